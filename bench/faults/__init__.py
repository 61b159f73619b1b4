"""Faults that agent frameworks have in their present releases, each as a small program, with Strandline beside it.

`python -m bench.faults` shows all of them, `python -m bench.faults NAME` one. Each module here is one fault: its
docstring says what goes wrong, `PACKAGE` names the distribution that shows it, `stock(folder)` runs that package and
nothing of ours, `ours(folder)` puts the same accident to Strandline's integration. Both answer with what was seen.
"""
