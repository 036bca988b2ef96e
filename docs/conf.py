"""Sphinx: the pages are MyST, their code is executed, and reading them needs no network."""

import noiseaware

project = "noiseaware"
author = "The noiseaware developers"
copyright = author
version = release = noiseaware.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "figures"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_merge_streams = True
nb_ipywidgets_js = {}

mathjax_path = "mathjax/tex-chtml.js"

autodoc_typehints = "none"  # shapes are in the source; types would drown the sentence
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
default_role = "code"  # docstrings write code between single backticks

html_theme = "pydata_sphinx_theme"
html_title = "noiseaware"
html_static_path = ["_static"]
html_show_sourcelink = False
html_sidebars = {"**": []}  # the bar on top and the contents of index.md are enough
html_show_copyright = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["sphinx-version"],
    "footer_end": [],
}
