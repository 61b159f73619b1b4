"""Measures the quality of a memory on real transcripts: `strandline bench quality`. One module for each measure."""
