"""The LoRA product in Triton, for compare_peers.py: an fp32 product made of three bf16 ones."""

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64
GROUP = 8  # block rows whose blocks follow each other, for the sake of L2
WARPS, STAGES = 8, 4


@triton.jit
def lora_kernel(
    W, X, A, T, Y, d,
    RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    blocks_m = tl.cdiv(d, BLOCK_M)
    blocks_n = tl.cdiv(d, BLOCK_N)
    first = block // (GROUP * blocks_n) * GROUP
    rows_here = min(blocks_m - first, GROUP)
    block_m = first + block % (GROUP * blocks_n) % rows_here
    block_n = block % (GROUP * blocks_n) // rows_here

    row = block_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    col = block_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, d, BLOCK_K):
        k = k0 + depth
        w = tl.load(W + row * d + k[None, :], mask=(row < d) & (k[None, :] < d), other=0.0)
        x = tl.load(X + k[:, None] * d + col, mask=(k[:, None] < d) & (col < d), other=0.0)
        total = tl.dot(w, x, total, input_precision="bf16x3")

    low = tl.arange(0, RANK)
    a = tl.load(A + row * RANK + low[None, :], mask=row < d, other=0.0)
    t = tl.load(T + low[:, None] * d + col, mask=col < d, other=0.0)
    total = tl.dot(a, t, total, input_precision="bf16x3")
    tl.store(Y + row * d + col, total, mask=(row < d) & (col < d))


def lora_bf16x3(W, X, A, B):
    d, rank = A.shape
    projected = B.T.contiguous() @ X
    result = torch.empty_like(X)
    grid = (triton.cdiv(d, BLOCK_M) * triton.cdiv(d, BLOCK_N),)
    lora_kernel[grid](
        W, X, A, projected, result, d, rank, BLOCK_M, BLOCK_N, BLOCK_K, GROUP,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return result
