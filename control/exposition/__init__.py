"""The figures of a snapshot as Prometheus reads them: families, label sets, the text itself.

Nothing here knows HTTP. ``families`` lists what is exposed; ``exposition`` writes it.
"""
