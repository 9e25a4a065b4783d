"""Documents of matrices, as tests write them by hand."""

import json
from itertools import pairwise


def document_of(*counts, labels=("ped", "empty"), edges=None, **more):
    """A document with a table [predicted][true] for each bin; bins are of 10 m where no edges are given."""
    edges = range(0, 10 * len(counts) + 1, 10) if edges is None else edges
    bins = [{"distance_m": list(ends), "counts": table} for ends, table in zip(pairwise(edges), counts, strict=True)]
    head = {"schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"]}
    return {**head, "labels": list(labels), "bins": bins, **more}


def write_matrices(path, *counts, **more):
    """The document as a file; gives its path."""
    path.write_text(json.dumps(document_of(*counts, **more)))
    return path
