"""`noiseaware reproduce`: refusals, and files where they belong."""


def test_a_figure_is_written_and_not_overwritten(monkeypatch, tmp_path, run, refused):
    from noiseaware.reproduce import figure2, output

    monkeypatch.setattr(figure2, "reproduce", lambda folder, **_: output.save(folder, "figure2", ["a"], [[0.5]], {}))
    done = run("reproduce", "figure2", "--folder", "pictures")
    assert done.exit_code == 0
    assert done.stdout.split() == ["pictures/figure2.csv"]
    assert (tmp_path / "pictures" / "figure2.csv").read_text().split() == ["a", "0.5"]
    assert done.stderr.startswith("noiseaware: took ")
    assert run("reproduce", "figure2", "--folder", "quiet", "--quiet").stderr == ""
    assert "exists already" in refused("reproduce", "figure2", "--folder", "pictures")
    assert run("reproduce", "figure2", "--folder", "pictures", "--force").exit_code == 0


def test_options_are_those_of_the_figure(monkeypatch, run):
    from noiseaware.reproduce import figure2

    asked = []
    monkeypatch.setattr(figure2, "reproduce", lambda folder, **options: asked.append((str(folder), options)) or [])
    assert run("reproduce", "figure2", "--quick", "--seed", "3").exit_code == 0
    assert run("reproduce", "figure2").exit_code == 0
    assert asked == [("noiseaware-figures", {"quick": quick, "seed": seed}) for quick, seed in ((True, 3), (False, 0))]


def test_an_unknown_figure_is_refused(refused):
    assert "FIGURE must be one of figure1, figure2, rare_events" in refused("reproduce", "figure9")
