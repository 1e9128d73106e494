#!/usr/bin/env python3
"""Judges an exported kernel from outside: compiles it as a PyTorch extension, compares with PyTorch
and times both.

    harness.py                                     W.pt X.pt A.pt B.pt in the working folder
    harness.py --generate --sizes 3584 4096        inputs drawn as seeds/lora/problem.toml says

Each size takes 10 warm-up calls and 50 timed ones, every timed call between two CUDA events with a
synchronisation after it; the figure is the median in milliseconds. Writes result.out and exits 1
when any size is wrong.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import torch

RANK = 16
LINES = [
    "correct",
    "max_abs_err",
    "rel_l2_err",
    "student_median_ms",
    "torch_median_ms",
    "speedup",
]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", default="optimized_lora.cu", type=pathlib.Path)
    parser.add_argument("--inputs", default=".", type=pathlib.Path, help="folder of the .pt files")
    parser.add_argument("--generate", action="store_true", help="draw the inputs, load none")
    parser.add_argument("--sizes", nargs="+", type=int, default=[4096], help="d to generate [4096]")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn inputs [0]")
    parser.add_argument("--out", default="result.out", type=pathlib.Path, help="[result.out]")
    parser.add_argument("--json", type=pathlib.Path, help="also write every figure here")
    return parser.parse_args()


def compile_extension(file, name="optimized_lora_ext"):
    """forward() of the file. The build folder is private: a killed load leaves a lock, on which
    the next load from a shared folder would wait for ever. Files that are compiled at the same time
    need names of their own."""
    from torch.utils import cpp_extension

    with tempfile.TemporaryDirectory() as folder:
        module = cpp_extension.load(
            name=name,
            sources=[str(file.resolve())],
            extra_cuda_cflags=["-O3"],
            build_directory=folder,
            with_cuda=True,
        )
        return module.forward


def load_inputs(folder):
    return [torch.load(folder / f"{name}.pt").cuda() for name in "WXAB"]


def draw_inputs(size, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, device="cuda")

    return [
        normal(size, size) / size**0.5,
        normal(size, size),
        normal(size, RANK) * 0.02,
        normal(size, RANK) * 0.02,
    ]


def reference(W, X, A, B):
    return W @ X + A @ (B.transpose(0, 1).contiguous() @ X)


def call_ms(function, inputs):
    """One call between two events on the current stream."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function(*inputs)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def median_ms(function, inputs):
    for _ in range(10):
        function(*inputs)
    torch.cuda.synchronize()
    return statistics.median(call_ms(function, inputs) for _ in range(50))


def judge(forward, inputs):
    expected = reference(*inputs)
    found = forward(*inputs)
    difference = (found - expected).double()
    result = {
        "d": inputs[0].shape[0],
        "correct": torch.allclose(found, expected, rtol=1e-4, atol=1e-4),
        "max_abs_err": difference.abs().max().item(),
        "rel_l2_err": (difference.norm() / expected.double().norm()).item(),
    }
    del expected, found, difference
    result["student_median_ms"] = median_ms(forward, inputs)
    result["torch_median_ms"] = median_ms(reference, inputs)
    result["speedup"] = result["torch_median_ms"] / result["student_median_ms"]
    return result


def text_of(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def result_lines(results):
    """The lines of result.out; of several sizes each block begins with its own."""
    names = LINES if len(results) == 1 else ["d", *LINES]
    return "".join(f"{name}: {text_of(result[name])}\n" for result in results for name in names)


def table(results):
    names = ["d", *LINES]
    rows = [names, *([text_of(result[name]) for name in names] for result in results)]
    return "\n".join("  ".join(cell.rjust(17) for cell in row) for row in rows)


def main():
    arguments = parse_arguments()
    forward = compile_extension(arguments.file)
    if arguments.generate:
        drawn = (draw_inputs(size, arguments.seed) for size in arguments.sizes)
    else:
        drawn = [load_inputs(arguments.inputs)]
    results = [judge(forward, inputs) for inputs in drawn]

    print(table(results))
    arguments.out.write_text(result_lines(results))
    if arguments.json:
        report = {
            "card": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "results": results,
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(0 if all(result["correct"] for result in results) else 1)


if __name__ == "__main__":
    main()
