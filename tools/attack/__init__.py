"""The attack on nodenova: mutated inputs, killed commands, races, relations, a long run, mutants.

`python -m tools.attack` runs all parts, or those that are named, and writes results/attack/.
"""
