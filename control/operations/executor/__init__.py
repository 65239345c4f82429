"""The process that carries out reassignments: wave by wave, throttled, watched."""
