# What a cell has to reach, and whether it did: docs/performance.md's table as a function.

PEER_TOLERANCE = 1.01  # two candidates this close are equally fast: the noise of a median


def cold_share(n):
    """The least share of copy speed where the buffers come from DRAM."""
    return 0.97 if n <= 262144 else 0.90


def hot_us(n, copy_us):
    """The most microseconds that a call may take where its buffers are in the L2."""
    extra = 1.0 if n <= 4096 else 2.0 if n <= 262144 else 3.0
    return 1.15 * copy_us + extra


def misses(mode, n, us, copy_us, best_peer_us=None):
    """What the cell misses, as short words; empty where it meets its target."""
    words = []
    if mode == "cold":
        share, need = copy_us / us, cold_share(n)
        # A share is stated with three digits: 0.9699 of 0.97 is not a miss anyone could read.
        if round(share, 3) < need:
            words.append(f"{share:.3f} < {need:.2f}")
    else:
        need = hot_us(n, copy_us)
        if round(us, 2) > round(need, 2):
            words.append(f"{us:.2f} > {need:.2f} us")
    if best_peer_us is not None and us > PEER_TOLERANCE * best_peer_us:
        words.append(f"peer {us / best_peer_us:.2f}x faster")
    return words
