"""The benchmark that needs more than the package: peers, a C compiler, and the page it is published on."""
