"""The page's document: what a browser reads before Dash begins, and what it need not read.

A first visit is bound by the browser's one thread, which compiles and runs every script. Dash asks
for more of them than this page uses.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from dash import Dash

from dashboard.server.origin_check import SCRIPTS_NONCE

ASSETS: Final = Path(__file__).parents[1] / "assets"
PLOTLY: Final = "vendor/plotly-cartesian.min.js"
"""Plotly's own bundle of the traces that our figures use: a third of the whole. As published in
npm's ``plotly.js-cartesian-dist-min``, in the version of the ``plotly`` package."""
NOT_SCRIPTS: Final = r"^plotly-"
"""Assets that the document does not read at once (a regular expression, as Dash takes it)."""
MODULES: Final = "modules"
"""Folder of the page's own scripts: ES modules, which Dash would read as plain ones."""
_UNUSED: Final = ("/deps/polyfill@", "/dash_table/bundle")
"""Scripts of Dash for browsers before 2020, and for a table that no view has."""
_TABLES: Final = re.compile(r'<script src="([^"]*/dash_ag_grid/[^"]*)"></script>')
"""The largest script, and many views have no table."""

_TEMPLATE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{%title%}</title>
MODULES_MAP
<script>
// Before anything is painted, so that a dark page does not flash white.
(function () {
  var chosen = null;
  try { chosen = JSON.parse(window.localStorage.getItem("scheme-choice")); } catch (error) {}
  var dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  var scheme = document.documentElement.dataset.scheme = chosen || (dark ? "dark" : "light");
  document.cookie = "scheme=" + scheme + "; path=/; SameSite=Lax";
  var name = document.documentElement.dataset.cluster;
  function soon(kind, address) {
    var link = document.createElement("link");
    link.rel = "preload"; link.as = kind; link.href = address;
    if (kind === "fetch") link.crossOrigin = "anonymous";
    document.head.appendChild(link);
  }
  // What Dash asks for once its scripts have run; asked for now, it comes while they are read.
  var base = name ? "/@" + encodeURIComponent(name) : "";
  soon("fetch", base + "/_dash-layout");
  soon("fetch", base + "/_dash-dependencies");
  // Charts ask Dash for their library, and Dash asks this place. It is run after the first text
  // stands.
  var plotly = "PLOTLY_ADDRESS";
  Object.defineProperty(window, "_dashPlotlyJSURL", { get: () => plotly, set: () => {} });
  var view = window.location.pathname;
  // The overview stands without: there it is asked for by the charts of history, once they stand.
  var withCharts =
    /^\\/((topics|brokers|groups|moves|produce)\\/.+|brokers|plan|produce|job|what-if)$/;
  if (withCharts.test(view)) {
    soon("script", plotly);
    soon("script", base + "/_dash-component-suites/dash/dcc/async-graph.js");
  }
  // Tables' library is read by assets/modules/tables.js: at once, or when the first view stands.
  window.partiscopeTables = function (address) {
    var now = /^\\/(topics|partitions|brokers|groups)(\\/|$)/.test(view);
    window.partiscopeTables = { address: address, now: now };
    if (now) soon("script", address);
  };
})();
</script>
{%favicon%}
{%css%}
</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


def index_page() -> str:
    """The document as Dash fills it in."""
    template = _TEMPLATE.replace("PLOTLY_ADDRESS", address_of(PLOTLY))
    return template.replace("MODULES_MAP", modules_map())


def address_of(asset: str) -> str:
    """Where the browser finds it; another file has another address."""
    return f"/assets/{asset}?m={(ASSETS / asset).stat().st_mtime}"


def modules_map() -> str:
    """Where modules find each other (an import map), and that they are wanted soon: all at once,
    not one after another as they name each other."""
    names = sorted(path.name for path in (ASSETS / MODULES).glob("*.js"))
    known = {f"/assets/{MODULES}/{name}": address_of(f"{MODULES}/{name}") for name in names}
    soon = [f'<link rel="modulepreload" href="{address}">' for address in known.values()]
    return "\n".join([f'<script type="importmap">{json.dumps({"imports": known})}</script>', *soon])


class LeanDash(Dash):
    """Has the browser read only what the page uses."""

    def _generate_scripts_html(self) -> str:
        lines: str = super()._generate_scripts_html()
        kept = [line for line in lines.split("\n") if not any(word in line for word in _UNUSED)]
        scripts, _ = _TABLES.subn("", "\n".join(kept))
        return f"{_told_tables(lines)}\n{scripts}"

    def interpolate_index(self, *args: Any, **parts: Any) -> Any:
        """The page around everything; its own scripts are named, so that no other one is run."""
        page: str = super().interpolate_index(*args, **parts)  # type: ignore[no-untyped-call]
        return page.replace("<script", f'<script nonce="{SCRIPTS_NONCE}"')

    def _generate_renderer(self) -> str:
        """Dash begins once the page's modules have run: its first callbacks call them. A module
        alone would run at any time after Dash has begun."""
        begin = f'import "/assets/{MODULES}/main.js";\n{self.renderer}'
        return f'<script id="_dash-renderer" type="module">{begin}</script>'


def _told_tables(scripts: str) -> str:
    """Tells the page where the library of tables is."""
    address = _TABLES.search(scripts)
    return f"<script>partiscopeTables({json.dumps(address[1])})</script>" if address else ""
