"""Partitions that are made where they are counted, and gone when they are: data of any size, never stored.

python generated_parts.py WORKERS OBJECTS...   counts so many objects, and tells rates and memory of each worker
"""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from parquet_scene import write_tables

from verifier.base.blocks import Pool
from verifier.perception.confusion.partitions import TableCount
from verifier.perception.confusion.streaming import PartCount, added_parts
from verifier.perception.settings import CountSettings

OBJECTS = 500_000
"""Annotated objects of a partition."""
ASKED = CountSettings(format="table", classes="ped,obs", bins="0,10,20,inf", unmatched="own_bin")


@dataclass(frozen=True)
class Made:
    """Makes a partition by its number and counts it."""

    objects: int = OBJECTS

    def __call__(self, number: int) -> PartCount:
        with TemporaryDirectory() as folder:
            write_tables(Path(folder), self.objects, self.objects // 10, sequences=1, seed=number)
            paths = {name: f"{folder}/{name}.parquet" for name in ("annotations", "detections", "frames")}
            job = TableCount.of(replace(ASKED, **paths), None)
            return job((number, job.tables.whole))


def counted_objects(scheduler, objects):
    """Totals, and what each worker did."""
    with Pool(scheduler) as pool:
        found = pool.sum(Made(), range(objects // OBJECTS), added_parts)
    return found.progress.counted.totals, pool.shares


if __name__ == "__main__":
    for size in map(int, sys.argv[2:]):
        begun = time.monotonic()
        totals, shares = counted_objects(sys.argv[1], size)
        print(size, dict(totals), f"{time.monotonic() - begun:.0f} s")
        print(*(f"  {share}" for share in shares), sep="\n", flush=True)
