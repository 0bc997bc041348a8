#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that convolutions with a sharded image receive, from the attributes of the model alone.

usage: halos.py MODEL HEIGHT WIDTH ROWS COLUMNS
The devices are a grid of ROWS x COLUMNS. Of each convolution, the bytes of the device that receives the most count.
"""
import sys

import onnx


def needed(shards, shard, extent, out, kernel, stride, dilation, low):
    """The positions of the input that a shard has, and those that it needs, in one dim."""
    own, of_result = extent // shards, out // shards
    first = max(0, shard * of_result * stride - low)
    last = min(extent - 1, ((shard + 1) * of_result - 1) * stride - low + (kernel - 1) * dilation)
    return set(range(shard * own, (shard + 1) * own)), set(range(first, last + 1))


def halo_bytes(model, height, width, grid):
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, height, width)):
        dim.dim_value = extent
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.input, *graph.value_info, *graph.output]}
    halos = {}
    for node in graph.node:
        if node.op_type != "Conv":
            continue
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        _, channels, *extents = shapes[node.input[0]]
        outs = shapes[node.output[0]][2:]
        most = 0
        for row in range(grid[0]):
            for column in range(grid[1]):
                own, all_needed = 1, 1
                for d, shard in enumerate((row, column)):
                    held, read = needed(grid[d], shard, extents[d], outs[d], given["kernel_shape"][d], given.get("strides", [1, 1])[d],
                                        given.get("dilations", [1, 1])[d], given.get("pads", [0] * 4)[d])
                    own *= len(held & read)
                    all_needed *= len(read)
                most = max(most, 4 * channels * (all_needed - own))
        halos[node.input[0], tuple(given["kernel_shape"]), tuple(given.get("strides", [1, 1]))] = most
    return sum(halos.values())


def main():
    path, height, width, rows, columns = sys.argv[1], *map(int, sys.argv[2:6])
    print(halo_bytes(onnx.load(path), height, width, (rows, columns)))


main()
