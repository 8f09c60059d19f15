#!/usr/bin/env python3
"""PyTorch's own DistributedDataParallel on the runner's models: the baseline that the runner is compared with.

pytorch_ddp.py --workers 4 --models resnet18_cifar,resnet50 --batches 32,128 [--repeats 1] [-o FILE]

One process per GPU, NCCL, TF32 in convolutions and matrix products (as the runner with --precision tf32) and cuDNN's
search for the fastest convolution, as in the runner; synthetic samples on the device; the runner's optimizer (SGD, momentum
0.9, weight decay 5e-4). Prints, and writes as JSON, the median step in milliseconds: `step`
synchronises after every step, `none` only around a block of steps.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

MODELS = ("vgg11", "resnet18_cifar", "resnet50")


class Block(nn.Module):
    """Basic (expansion 1) or bottleneck (expansion 4) block, He et al. 2016, torchvision's strides."""

    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        if outputs == width:
            shape = [(inputs, width, 3, stride), (width, outputs, 3, 1)]
        else:
            shape = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        layers = []
        for i, (a, b, kernel, s) in enumerate(shape):
            layers += [nn.Conv2d(a, b, kernel, s, kernel // 2, bias=False), nn.BatchNorm2d(b)]
            if i + 1 < len(shape):
                layers.append(nn.ReLU(inplace=True))
        self.body = nn.Sequential(*layers)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet(stem, depths, expansion, classes):
    layers, channels = list(stem), 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(Block(channels, width, width * expansion, 2 if stage > 0 and i == 0 else 1))
            channels = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def build(name):
    """The network, the shape of a sample, the number of classes."""
    if name == "resnet50":
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        return resnet(stem, (3, 4, 6, 3), 4, 1000), (3, 224, 224), 1000
    if name == "resnet18_cifar":
        stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
        return resnet(stem, (2, 2, 2, 2), 1, 10), (3, 32, 32), 10
    layers, channels = [], 3
    for width in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if width == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10)), (3, 32, 32), 10


def measure(name, batch, rank, seconds):
    torch.manual_seed(1)
    network, shape, classes = build(name)
    parameters = sum(p.numel() for p in network.parameters())
    model = nn.parallel.DistributedDataParallel(network.cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    loss = nn.CrossEntropyLoss()
    samples = torch.randn(batch, *shape, device="cuda")
    labels = torch.randint(classes, (batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(samples), labels).backward()
        optimizer.step()

    def timed(count, synchronise):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        times, begin = [], time.perf_counter()
        last = begin
        for _ in range(count):
            step()
            if synchronise:
                torch.cuda.synchronize()
                now = time.perf_counter()
                times.append(now - last)
                last = now
        torch.cuda.synchronize()
        return statistics.median(times) if synchronise else (time.perf_counter() - begin) / count

    timed(10, False)  # the first iteration's single bucket, cuDNN's choices, the allocator
    per_step = torch.tensor(timed(10, False), device="cuda")
    dist.all_reduce(per_step, op=dist.ReduceOp.MAX)  # every rank takes as many steps
    count = max(10, int(seconds / per_step.item()))
    return {"model": name, "parameters": parameters, "batch_per_worker": batch, "steps": count,
            "step_ms": 1e3 * timed(count, True), "none_ms": 1e3 * timed(count, False)}


def work(rank, options, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.cuda.set_device(rank)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    dist.init_process_group("nccl", rank=rank, world_size=options.workers)
    for name in options.models:
        for batch in options.batches:
            row = measure(name, batch, rank, options.seconds)
            if rank == 0:
                print(f"{name:16} batch {batch:4} n {options.workers}  step {row['step_ms']:8.3f} ms  "
                      f"not synchronised {row['none_ms']:8.3f} ms", flush=True)
                results.append(row)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=torch.cuda.device_count())
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--batches", type=lambda text: [int(b) for b in text.split(",")], default=[32])
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps in a timed block")
    parser.add_argument("--port", type=int, default=29533)
    parser.add_argument("-o", "--out")
    options = parser.parse_args()
    for name in options.models:
        if name not in MODELS:
            parser.error(f"no model {name}; known are {', '.join(MODELS)}")
    if not 1 <= options.workers <= torch.cuda.device_count():
        parser.error(f"{options.workers} workers on {torch.cuda.device_count()} GPUs")
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with mp.Manager() as manager:
        results = manager.list()
        mp.spawn(work, (options, results), nprocs=options.workers)
        record = {"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "workers": options.workers,
                  "nccl": ".".join(map(str, torch.cuda.nccl.version())), "points": list(results)}
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
