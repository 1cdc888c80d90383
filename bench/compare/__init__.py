# The parts of bench/compare.py: grids, candidates, timing, records, tables and plots.
