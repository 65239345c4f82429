"""Workarounds of Textual 8.2, each with the upstream issue it waits for; no views of ours.

| file | what Textual lacks | goes when this is released |
|---|---|---|
| app.py | keys act in the order in which they were typed | Textual issue 6605 (pull request 6631) |
| driver.py | Escape and a key in one piece are two keys | Textual issue 6663: told apart from Alt |
| ending.py | SIGTERM and SIGHUP leave the terminal as it was | Textual issue 5140 |
| no_color.py | ``NO_COLOR`` uses the terminal's own two colours | Textual issue 2829 |
| mirror.py | only changed cells are sent | none is reported: Textual sends whole regions of lines |
| quick_table.py | a cell changes without painting the table | Textual issue 6457: slow updates |
"""
