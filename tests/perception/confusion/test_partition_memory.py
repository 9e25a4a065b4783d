"""Memory of a worker does not grow with the data: partitions are made where they are counted, and never stored."""

import pytest
from generated_parts import OBJECTS, counted_objects


@pytest.mark.slow
def test_memory_of_a_worker_is_flat_to_ten_million_objects():
    peaks = []
    for objects in (4 * OBJECTS, 20 * OBJECTS):
        totals, shares = counted_objects("2", objects)
        assert totals["annotations"] == objects
        assert sum(share.blocks for share in shares) == objects // OBJECTS
        peaks.append(max(share.peak_bytes for share in shares))
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.benchmark
def test_memory_of_a_worker_is_flat_to_a_hundred_million_objects():
    (_, few), (totals, many) = (counted_objects("2", objects) for objects in (2 * OBJECTS, 200 * OBJECTS))
    print(*few, *many, sep="\n")  # 0.364 GiB of 10^6, 0.366 of 10^8, which took 15 minutes on a loaded machine
    assert totals["annotations"] == 200 * OBJECTS
    # a hundred times the data
    assert max(share.peak_bytes for share in many) < 1.1 * max(share.peak_bytes for share in few)
