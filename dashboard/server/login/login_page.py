"""The page that asks for name and password: one form, without scripts."""

import re
from html import escape
from typing import Final
from urllib.parse import quote

HOME: Final = "/"
_OWN_PATH: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2000}")
"""A path of this page. Browsers read ``//`` and ``/\\`` as the begin of another site."""
_STYLE: Final = """
:root { --text: #1b2430; --muted: #5d6b7c; --line: #8a97a6; --surface: #fff; --ground: #f3f6f9;
  --accent: #0061a0; --on-accent: #fff; --critical: #b3261e; color-scheme: light; }
:root[data-scheme="dark"] { --text: #e8edf3; --muted: #93a1b1; --line: #5d6b7c; --surface: #161d25;
  --ground: #0e1319; --accent: #7cc4f2; --on-accent: #0e1319; --critical: #ff8a80;
  color-scheme: dark; }
@media (prefers-color-scheme: dark) { :root:not([data-scheme]) { --text: #e8edf3; --muted: #93a1b1;
  --line: #5d6b7c; --surface: #161d25; --ground: #0e1319; --accent: #7cc4f2; --on-accent: #0e1319;
  --critical: #ff8a80; color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 18px;
  background: var(--ground); color: var(--text);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
form { display: grid; gap: 14px; width: min(340px, 100%); padding: 24px; background: var(--surface);
  border: 1px solid var(--line); border-radius: 10px; }
h1 { margin: 0; font-size: 1.15rem; font-weight: 750; letter-spacing: -0.01em; }
label { display: grid; gap: 4px; color: var(--muted); }
input, button { font: inherit; padding: 9px 11px; border-radius: 8px; min-height: 40px; }
input { color: var(--text); background: var(--ground); border: 1px solid var(--line); }
button { border: 0; background: var(--accent); color: var(--on-accent); font-weight: 650;
  cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
p { margin: 0; color: var(--critical); }
"""


def next_path(text: str) -> str:
    """Where a login leads: a path of this page, and never another site."""
    return text if _OWN_PATH.fullmatch(text) and not text.startswith("/login") else HOME


def login_address(path: str) -> str:
    """The page that asks, and leads there afterwards."""
    wanted = next_path(path)
    return "/login" if wanted == HOME else f"/login?next={quote(wanted, safe='')}"


def login_document(wanted: str, *, name: str = "", problem: str = "", scheme: str = "") -> str:
    """The document, with why the attempt before it was refused."""
    chosen = f' data-scheme="{scheme}"' if scheme in ("dark", "light") else ""
    told = f'<p role="alert" id="problem">{escape(problem)}</p>' if problem else ""
    described = ' aria-describedby="problem"' if problem else ""
    on_name, on_password = ("", " autofocus") if name else (" autofocus", "")
    return f"""<!DOCTYPE html>
<html lang="en"{chosen}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · partiscope</title>
<style>{_STYLE}</style>
</head>
<body><main>
<form method="post" action="/login">
<h1>partiscope</h1>
{told}
<input type="hidden" name="next" value="{escape(next_path(wanted))}">
<label>Name<input name="name" value="{escape(name)}" autocomplete="username" maxlength="100"
 autocapitalize="none" spellcheck="false" required{on_name}{described}></label>
<label>Password<input name="password" type="password" autocomplete="current-password"
 maxlength="1000" required{on_password}{described}></label>
<button>Log in</button>
</form>
</main></body>
</html>
"""
