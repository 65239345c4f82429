"""Figures of the page: pure functions of view rows and series. They know no component."""
