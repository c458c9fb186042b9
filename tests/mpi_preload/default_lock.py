"""The drop-in's default for a window of so many ranks on this machine."""

import os

NAME = "flight-rw"
ON_SHARED_CORES = f"{NAME} with barge=4000 patience=300000"


def default_lock(ranks):
    """As the statistics name it."""
    return NAME if ranks <= len(os.sched_getaffinity(0)) else ON_SHARED_CORES
