"""Planners from elsewhere: tables, controllers of gr1c, modules of PRISM, and functions of arrays.

All become one total function of state, memory and reports, tabulated on the states that are reached. Nothing in a
file is executed.
"""
