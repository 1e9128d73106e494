#!/usr/bin/env python3
"""Times exported kernels beside what a user would otherwise pick, in one run, and prints one table.

    compare_peers.py optimized_lora.cu [ANOTHER.cu ...] [--sizes 3584 3840 4096 4352 4608]

Contenders take turns, forwards and backwards, ten calls at a time, for a card that warms up slows
whoever comes last; the figure is the median of fifty calls, each as the harness times them. A peer
that cannot run here stays in the table with the reason. Exits 1 when a file is wrong at any size.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import sys

import torch

import harness

ROUNDS = 5
CALLS = 10
WARM_UP = 3
SIZES = [3584, 3840, 4096, 4352, 4608]
FP16_SCALE = 256.0  # of W: keeps the low parts of its split out of fp16's subnormals


def folded(W, X, A, B):
    return torch.addmm(W, A, B.T) @ X


def compiled():
    """PyTorch's own compiler; without its graph capture, which would time another protocol."""
    return torch.compile(harness.reference, mode="max-autotune-no-cudagraphs")


def split_fp16(W, X, A, B):
    """Three fp16 products as one of depth 3 d: hi hi + hi lo + lo hi, accumulated in fp32."""
    scaled = torch.addmm(W, A, B.T) * FP16_SCALE
    w_high = scaled.half()
    w_low = (scaled - w_high).half()
    x_high = X.half()
    x_low = (X - x_high).half()
    left = torch.cat([w_low, w_high, w_high], dim=1)
    right = torch.cat([x_high, x_low, x_high], dim=0)
    return torch.mm(left, right, out_dtype=torch.float32) / FP16_SCALE


def triton_bf16x3():
    """Three bf16 products in Triton, the low-rank term in the epilogue. Its best configuration on an
    H200, pinned, for tuning takes minutes."""
    from triton_peer import lora_bf16x3

    return lora_bf16x3


PEERS = {
    "PyTorch": lambda: harness.reference,
    "PyTorch, folded": lambda: folded,
    "torch.compile": compiled,
    "Triton bf16x3": triton_bf16x3,
    "split fp16, one cuBLAS product": lambda: split_fp16,
}


def make(name, maker, inputs):
    """The contender, called once; else the reason why it cannot run."""
    try:
        function = maker()
        function(*inputs)
        torch.cuda.synchronize()
        return function
    except Exception as error:  # whatever a library that is not ours throws
        return f"{name} cannot run here: {str(error).strip().splitlines()[0]}"


def timed_calls(function, inputs):
    for _ in range(WARM_UP):
        function(*inputs)
    torch.cuda.synchronize()
    return [harness.call_ms(function, inputs) for _ in range(CALLS)]


def race(contenders, inputs):
    """Median milliseconds of each contender."""
    times = {name: [] for name in contenders}
    for number in range(ROUNDS):
        order = list(contenders) if number % 2 == 0 else list(reversed(contenders))
        for name in order:
            times[name] += timed_calls(contenders[name], inputs)
    return {name: statistics.median(values) for name, values in times.items()}


def compare(makers, size, seed):
    """Per contender its milliseconds, speed-up and whether it passes; or the reason for neither."""
    inputs = harness.draw_inputs(size, seed)
    made = {name: make(name, maker, inputs) for name, maker in makers.items()}
    contenders = {name: found for name, found in made.items() if callable(found)}
    expected = harness.reference(*inputs)
    passes = {
        name: torch.allclose(function(*inputs), expected, rtol=1e-4, atol=1e-4)
        for name, function in contenders.items()
    }
    times = race(contenders, inputs)
    return {
        name: (
            {"ms": times[name], "speedup": times["PyTorch"] / times[name], "passes": passes[name]}
            if name in contenders
            else {"reason": made[name]}
        )
        for name in made
    }


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def row(name, sizes, results):
    entries = [results[size][name] for size in sizes]
    if reasons := [entry["reason"] for entry in entries if "reason" in entry]:
        return [name, *["–"] * len(sizes), "–", reasons[0]]
    wrong = [str(size) for size, entry in zip(sizes, entries) if not entry["passes"]]
    return [
        name,
        *(f"{entry['ms']:.3f}" for entry in entries),
        f"{geometric_mean([entry['speedup'] for entry in entries]):.3f}",
        f"no: {', '.join(wrong)}" if wrong else "yes",
    ]


def table(sizes, results):
    """Markdown: milliseconds per size, the geometric mean of the speed-ups, whether it passes."""
    head = ["", *(f"d = {size}, ms" for size in sizes), "× PyTorch", "passes"]
    rows = [head, ["---"] * len(head)]
    rows += [row(name, sizes, results) for name in results[sizes[0]]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="exported kernels")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="d [five of them]")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn inputs [0]")
    parser.add_argument("--json", type=pathlib.Path, help="also write every figure here")
    return parser.parse_args()


def compile_all(files):
    """forward() of each file."""
    names = [f"kernel_{number}" for number in range(len(files))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return dict(zip(map(str, files), pool.map(harness.compile_extension, files, names)))


def report(results):
    return {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "results": results,
    }


def main():
    arguments = parse_arguments()
    forwards = compile_all(arguments.files)
    makers = PEERS | {name: lambda made=made: made for name, made in forwards.items()}
    results = {}
    for size in arguments.sizes:
        results[size] = compare(makers, size, arguments.seed)
        if arguments.json:  # every time: some peers take minutes
            arguments.json.write_text(json.dumps(report(results), indent=2) + "\n")
    print(table(arguments.sizes, results))
    right = all(results[size][name].get("passes") for size in results for name in forwards)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
