"""Users of the page and roles of the settings: files and sections."""
