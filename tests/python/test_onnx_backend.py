"""The interface onnx.backend, and ONNX's own runner on it, with Debian's onnx."""

import importlib.util
import os
import unittest

import numpy as np

import candela
import common

if importlib.util.find_spec("onnx") is not None:
    import onnx.helper
    from onnx.backend.test.runner import Runner

    import candela.onnx_backend as backend

# Node tests of these operators: each of them passes on soft.
PASSED = "^test_(add|argmax|averagepool|clip|concat|conv|equal|gather|gemm|matmul|relu|reshape|slice|softmax|where)_"


@unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
class Interface(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def test_devices(self):
        self.assertTrue(backend.supports_device("CPU"))
        self.assertTrue(backend.supports_device("template:0"))
        self.assertFalse(backend.supports_device("CUDA"))
        with self.assertRaisesRegex(candela.NotFoundError, "no device 'CUDA:1'"):
            backend.prepare(onnx.load(os.path.join(common.DIGITS, "digits.onnx")), "CUDA:1")

    def test_models(self):
        model = onnx.load(os.path.join(common.DIGITS, "digits.onnx"))
        images = np.load(os.path.join(common.DIGITS, "test_images.npy"))[:4]
        scores = np.load(os.path.join(common.DIGITS, "expected_scores.npy"))[:4]
        self.assertTrue(backend.is_compatible(model))
        for given in ([images], {"images": images}):
            [found] = backend.prepare(model, backend="cpu").run(given)
            np.testing.assert_allclose(found, scores, rtol=1e-3, atol=1e-3)
        [found] = backend.run_model(model, [images], "template", dims={"N": 4})
        np.testing.assert_allclose(found, scores, rtol=1e-3, atol=1e-3)

    def test_nodes(self):
        node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
        [found] = backend.run_node(node, [self.x, self.x], outputs_info=[(np.dtype("f4"), (2, 3))])
        np.testing.assert_array_equal(found, self.x * 2)
        split = onnx.helper.make_node("Split", ["x"], ["left", "right"], axis=0)
        left, right = backend.run_node(split, [self.x], opset_version=11)
        np.testing.assert_array_equal(np.concatenate([left, right]), self.x)
        with self.assertRaisesRegex(candela.InvalidArgumentError, "1 inputs were given, the node has 2"):
            backend.run_node(node, [self.x])

    def test_operators_that_there_are_not(self):
        model = onnx.helper.make_model(onnx.helper.make_graph(
            [onnx.helper.make_node("Nothing", ["x"], ["y"])], "g",
            [onnx.helper.make_tensor_value_info("x", 1, [2])], [onnx.helper.make_tensor_value_info("y", 1, [2])]))
        self.assertFalse(backend.is_compatible(model))
        with self.assertRaisesRegex(candela.UnsupportedError, "model.onnx: node 'Nothing_0'"):
            backend.prepare(model)


@unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
class OnnxRunner(unittest.TestCase):
    def test_drives_candela(self):
        if not hasattr(np, "object"):
            np.object = object  # which the runner of onnx 1.12 asks for, and NumPy has not had since 1.24
        cases = Runner(backend.Backend).include(PASSED).test_cases["OnnxBackendNodeModelTest"]
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(result)
        self.assertEqual(result.errors + result.failures, [])
        self.assertGreater(result.testsRun - len(result.skipped), 100)


if __name__ == "__main__":
    common.main()
