"""The frame around every view: bars, dialogs, palette, rights and time."""
