"""Networks of the shapes of Caffe2's model zoo with seeded weights, each written twice: as nets of Caffe2 and as a model of ONNX."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import caffe2_net

SEED = 20251129


class Network:
    """Writes each layer to both forms. Blobs have the same names in both; in place layers write a blob again in Caffe2 alone."""

    def __init__(self, shape):
        self.shape = shape
        self.random = np.random.default_rng(SEED)
        self.ops, self.weights, self.nodes, self.initializers = [], {}, [], []
        self.channels = {"data": shape[1]}
        self.now = {"data": "data"}  # the value of ONNX that a blob is at the moment

    def weight(self, name, *shape, scale=None, low=0.0):
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 4)
        array = (self.random.standard_normal(shape) * scale + low).astype(np.float32)
        self.weights[name] = array
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def layer(self, type, inputs, output, onnx_type, weights=(), arguments=None, attributes=None):
        self.ops.append(caffe2_net.op(type, [*inputs, *weights], [output], **(arguments or {})))
        value = output if output not in self.now else f"{output}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(onnx_type, [*(self.now[name] for name in inputs), *weights], [value],
                                           **(attributes or {})))
        self.now[output] = value
        self.channels.setdefault(output, self.channels[inputs[0]])
        return output

    def conv(self, x, name, channels, kernel, stride=1, pad=0, group=1):
        weights = [self.weight(f"{name}_w", channels, self.channels[x] // group, kernel, kernel), self.weight(f"{name}_b", channels)]
        self.channels[name] = channels
        return self.layer("Conv", [x], name, "Conv", weights, {"kernel": kernel, "stride": stride, "pad": pad, "group": group},
                          {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "group": group})

    def relu(self, x):
        return self.layer("Relu", [x], x, "Relu")

    def norm(self, x):
        count = self.channels[x]
        weights = [self.weight(f"{x}_s", count, scale=0.1, low=1.0), self.weight(f"{x}_t", count, scale=0.1),
                   self.weight(f"{x}_m", count, scale=0.1), self.weight(f"{x}_v", count, scale=0.01, low=1.0)]
        return self.layer("SpatialBN", [x], x, "BatchNormalization", weights, {"is_test": 1, "epsilon": 1e-5}, {"epsilon": 1e-5})

    def pool(self, x, name, kind, kernel, stride, pad=0, ceil=False):
        arguments = {"kernel": kernel, "stride": stride, "pad": pad, "legacy_pad": 3 if ceil else 0}
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "ceil_mode": int(ceil)}
        return self.layer(f"{kind}Pool", [x], name, f"{kind}Pool", (), arguments, attributes)

    def mean(self, x, name):
        return self.layer("AveragePool", [x], name, "GlobalAveragePool", (), {"global_pooling": 1})

    def concat(self, inputs, name):
        self.channels[name] = sum(self.channels[x] for x in inputs)
        return self.layer("Concat", inputs, name, "Concat", (), {"order": "NCHW"}, {"axis": 1})

    def add(self, inputs, name):
        return self.layer("Sum", inputs, name, "Sum")

    def connected(self, x, name, inputs, outputs):
        weights = [self.weight(f"{name}_w", outputs, inputs), self.weight(f"{name}_b", outputs)]
        flat = f"{name}_flat"
        self.ops.append(caffe2_net.op("FC", [x, *weights], [name]))
        self.nodes.append(helper.make_node("Flatten", [self.now[x]], [flat]))
        self.nodes.append(helper.make_node("Gemm", [flat, *weights], [name], transB=1))
        self.now[name] = name
        self.channels[name] = outputs
        return name

    def softmax(self, x, name):
        self.ops.append(caffe2_net.op("Softmax", [x], [name]))
        self.nodes.append(helper.make_node("Softmax", [self.now[x]], [name], axis=1))
        return name

    def write(self, folder, output):
        """predict_net.pb with its init net, and model.onnx."""
        names = list(self.weights)
        (folder / "predict_net.pb").write_bytes(caffe2_net.net(self.ops, ["data", *names], [output]))
        fills = [caffe2_net.fill(name, array) for name, array in self.weights.items()]
        (folder / "init_net.pb").write_bytes(caffe2_net.net(fills, (), names))
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("data", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "model.onnx")


def lenet():
    n = Network([2, 1, 28, 28])
    x = n.pool(n.conv("data", "conv1", 20, 5), "pool1", "Max", 2, 2)
    x = n.pool(n.conv(x, "conv2", 50, 5), "pool2", "Max", 2, 2)
    x = n.relu(n.connected(x, "ip1", 800, 500))
    return n, n.softmax(n.connected(x, "ip2", 500, 10), "prob")


def squeezenet():
    n = Network([1, 3, 64, 64])

    def fire(x, name, squeezed, expanded):
        x = n.relu(n.conv(x, f"{name}/squeeze1x1", squeezed, 1))
        sides = [n.relu(n.conv(x, f"{name}/expand{k}x{k}", expanded, k, pad=k // 2)) for k in (1, 3)]
        return n.concat(sides, f"{name}/concat")

    x = n.pool(n.relu(n.conv("data", "conv1", 64, 3, 2)), "pool1", "Max", 3, 2, ceil=True)
    x = n.pool(fire(fire(x, "fire2", 16, 64), "fire3", 16, 64), "pool3", "Max", 3, 2, ceil=True)
    x = fire(fire(x, "fire4", 32, 128), "fire5", 32, 128)
    x = n.relu(n.conv(x, "conv10", 100, 1))
    return n, n.softmax(n.mean(x, "pool10"), "softmaxout")


def resnet():
    n = Network([1, 3, 64, 64])

    def bottleneck(x, name, channels, stride):
        y = n.relu(n.norm(n.conv(x, f"{name}_a", channels, 1)))
        y = n.relu(n.norm(n.conv(y, f"{name}_b", channels, 3, stride, 1)))
        y = n.norm(n.conv(y, f"{name}_c", 4 * channels, 1))
        if stride != 1 or n.channels[x] != 4 * channels:
            x = n.norm(n.conv(x, f"{name}_shortcut", 4 * channels, 1, stride))
        return n.relu(n.add([y, x], f"{name}_sum"))

    x = n.pool(n.relu(n.norm(n.conv("data", "conv1", 32, 7, 2, 3))), "pool1", "Max", 3, 2, 1)
    for stage, channels in enumerate((16, 32, 64)):
        for block in range(2):
            x = bottleneck(x, f"res{stage}_{block}", channels, 2 if stage and not block else 1)
    x = n.connected(n.mean(x, "pool5"), "pred", 256, 100)
    return n, n.softmax(x, "softmax")


class Int8:
    """Layers of u8 with channels last; in ONNX each stands between DequantizeLinear and QuantizeLinear."""

    shape = [1, 8, 8, 3]

    def __init__(self):
        self.random = np.random.default_rng(SEED)
        self.ops, self.fills, self.nodes, self.initializers = [], [], [], []
        self.scales = {}  # by blob: scale and zero point

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(self, type, inputs, output, **attributes):
        self.nodes.append(helper.make_node(type, inputs, [output], **attributes))
        return output

    def pair(self, name, scale, zero, dtype):
        return [self.constant(f"{name}_scale", np.float32(scale)), self.constant(f"{name}_zero", dtype(zero))]

    def real(self, name):
        return self.node("DequantizeLinear", [name, f"{name}_scale", f"{name}_zero"], f"{name}_real{len(self.nodes)}")

    def layer(self, type, inputs, output, scale, zero, value, **arguments):
        """`value` is the name of the real result in ONNX."""
        self.ops.append(op_of(type, inputs, output, scale, zero, arguments))
        self.node("QuantizeLinear", [value, *self.pair(output, scale, zero, np.uint8)], output)
        self.scales[output] = scale
        return output

    def weight(self, name, shape, x):
        """Of a layer that reads x: u8 weights around 128, and their bias."""
        weights = self.random.integers(0, 256, shape).astype(np.uint8)
        bias = self.random.integers(-500, 500, shape[0]).astype(np.int32)
        scale = 0.01
        for each, array, factor, zero in ((f"{name}_w", weights, scale, 128), (f"{name}_b", bias, scale * self.scales[x], 0)):
            self.fills.append(caffe2_net.quantized_fill(each, array, factor, zero))
            self.constant(each, array)
            self.pair(each, factor, zero, array.dtype.type)
        return [f"{name}_w", f"{name}_b"]

    def quantize(self, x, output):
        return self.layer("Int8Quantize", [x], output, 0.03, 120, x)

    def conv(self, x, name, channels, inputs, relu):
        w, b = self.weight(name, (channels, 3, 3, inputs), x)
        first = self.node("Transpose", [self.real(x)], f"{name}_x", perm=[0, 3, 1, 2])
        weights = self.node("Transpose", [self.real(w)], f"{name}_first", perm=[0, 3, 1, 2])
        y = self.node("Conv", [first, weights, self.real(b)], f"{name}_y", kernel_shape=[3, 3], pads=[1] * 4)
        y = self.node("Relu", [y], f"{name}_relu") if relu else y
        y = self.node("Transpose", [y], f"{name}_last", perm=[0, 2, 3, 1])
        return self.layer("Int8ConvRelu" if relu else "Int8Conv", [x, w, b], name, 0.05, 0 if relu else 128, y, kernel=3, pad=1,
                          order="NHWC")

    def add(self, a, b, name):
        y = self.node("Relu", [self.node("Add", [self.real(a), self.real(b)], f"{name}_sum")], f"{name}_y")
        return self.layer("Int8SumRelu", [a, b], name, 0.06, 0, y)

    def pool(self, x, name, kind):
        first = self.node("Transpose", [self.real(x)], f"{name}_x", perm=[0, 3, 1, 2])
        y = self.node(f"{kind}Pool", [first], f"{name}_y", kernel_shape=[2, 2], strides=[2, 2])
        y = self.node("Transpose", [y], f"{name}_last", perm=[0, 2, 3, 1])
        return self.layer(f"Int8{kind}Pool", [x], name, self.scales[x], 0, y, kernel=2, stride=2, order="NHWC")

    def connected(self, x, name, inputs, outputs):
        w, b = self.weight(name, (outputs, inputs), x)
        flat = self.node("Flatten", [self.real(x)], f"{name}_flat")
        y = self.node("Gemm", [flat, self.real(w), self.real(b)], f"{name}_y", transB=1)
        return self.layer("Int8FC", [x, w, b], name, 0.2, 128, y)

    def dequantize(self, x, output):
        self.ops.append(caffe2_net.op("Int8Dequantize", [x], [output]))
        self.node("DequantizeLinear", [x, f"{x}_scale", f"{x}_zero"], output)
        return output

    def write(self, folder, output):
        names = [f"{each}_{part}" for each in ("conv1", "conv2", "fc") for part in "wb"]
        (folder / "predict_net.pb").write_bytes(caffe2_net.net(self.ops, ["data", *names], [output]))
        (folder / "init_net.pb").write_bytes(caffe2_net.net(self.fills, (), names))
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("data", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "model.onnx")


def op_of(type, inputs, output, scale, zero, arguments):
    return caffe2_net.op(type, inputs, [output], Y_scale=float(scale), Y_zero_point=zero, **arguments)


def int8():
    n = Int8()
    x = n.conv(n.quantize("data", "q"), "conv1", 8, 3, relu=True)
    x = n.add(x, n.conv(x, "conv2", 8, 8, relu=False), "sum")
    x = n.pool(n.pool(x, "pool1", "Max"), "pool2", "Average")
    return n, n.dequantize(n.connected(x, "fc", 2 * 2 * 8, 10), "scores")


NETWORKS = {"int8": int8, "lenet": lenet, "squeezenet": squeezenet, "resnet": resnet}
