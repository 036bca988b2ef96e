"""`noiseaware explore`: a page of this machine alone on which a posterior follows the hand."""

from typing import Annotated

import typer

from noiseaware.cli.failure import say
from noiseaware.cli.infer import FAMILY, read
from noiseaware.cli.prior import EXAMPLES, parse


def explore(
    path: Annotated[str, typer.Argument(metavar="RELEASE", help="A release file.")],
    prior: Annotated[str, typer.Option(help=f"What to begin with: {EXAMPLES}.")],
    family: Annotated[str | None, typer.Option(help=FAMILY)] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the loopback address; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open it in the browser.")] = True,
) -> None:
    """Explore a release interactively: change prior, method and interval level and watch the posterior update.

    Plan the next release alongside.

    [bold]Example[/bold]

    $ noiseaware explore wait.json --prior "gamma(1, 8)"

    The page is served to this machine alone, needs no network and writes no file. Ctrl-C ends it.
    """
    release, believed = read(path, family), parse(prior)
    from noiseaware.report.explorer import Server

    release.family.checked_prior(believed)
    with Server(release, prior, parse, port) as server:
        say(f"exploring {path} at {server.url} (Ctrl-C ends it)")
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("done")
