"""Guests: what ties Strandline to other frameworks by its public names only; each needs the extra of its name."""
