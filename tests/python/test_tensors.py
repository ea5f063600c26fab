"""Element types, tensors on the host and on devices, and memory that is shared with other libraries."""

import array
import contextlib
import importlib.util
import threading
import unittest

import numpy as np

import candela
import common

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_ML_DTYPES = importlib.util.find_spec("ml_dtypes") is not None
OF_NUMPY = {"f32": "float32", "f16": "float16", "f64": "float64", "i8": "int8", "u8": "uint8", "i16": "int16",
            "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64", "bool": "bool"}
OF_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
                "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu",
                "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn"}
PACKED = {"i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2", "f4e2m1": "float4_e2m1fn"}


def transposed(element):
    """A model that moves elements and does not compute: it has every type."""
    text = (f"graph @main(%x: {element}[2,3]) -> (%y: {element}[3,2] \"y\") {{\n"
            f"  %y = transpose %x {{perm = [1, 0]}}\n}}\n")
    return common.compile_text(text.encode())


def cast(source, target):
    return common.compile_text(f"""graph @main(%x: {source}[5]) -> (%y: {target}[5] "y") {{
      %y = cast %x {{to = {target}}}
    }}
    """.encode())


class Types(unittest.TestCase):
    def check(self, element, x):
        session = transposed(element)
        self.assertEqual((session.inputs[0].type, session.inputs[0].dtype), (element, x.dtype))
        y = session(x)
        self.assertEqual(y.dtype, x.dtype)
        np.testing.assert_array_equal(y.view("u1"), np.ascontiguousarray(x.T).view("u1"))

    def test_of_numpy(self):
        for element, name in OF_NUMPY.items():
            with self.subTest(element=element):
                self.check(element, np.array([[0, 1, 0], [1, 1, 0]]).astype(name))

    @unittest.skipUnless(HAS_ML_DTYPES, "ml_dtypes is not installed")
    def test_of_ml_dtypes(self):
        import ml_dtypes
        for element, name in OF_ML_DTYPES.items():
            with self.subTest(element=element):
                self.check(element, np.array([[1, 2, 0.5], [4, 1, 2]]).astype(getattr(ml_dtypes, name)))

    @unittest.skipUnless(HAS_ML_DTYPES, "ml_dtypes is not installed")
    def test_packed_ones_of_ml_dtypes(self):
        import ml_dtypes
        for element, name in PACKED.items():
            with self.subTest(element=element):
                low = -1 if element.startswith("i") else 0
                x = np.array([1, low, 1, 0, 1]).astype(getattr(ml_dtypes, name))
                np.testing.assert_array_equal(cast(element, "f32")(x), x.astype(np.float32))
                np.testing.assert_array_equal(cast("f32", element)(x.astype(np.float32)), x)

    def test_every_type_there_and_back(self):
        for element in (*OF_NUMPY, *OF_ML_DTYPES, *PACKED):
            with self.subTest(element=element):
                x = np.array([1, 0.5, 1, 2, 1] if element == "f8e8m0" else [1, 0, 1, 1, 0], np.float32)
                stored = cast("f32", element)(x)
                self.assertEqual(stored.shape, (5,))
                np.testing.assert_array_equal(cast(element, "f32")(stored), x)

    @unittest.skipIf(HAS_ML_DTYPES, "ml_dtypes is installed")
    def test_types_that_numpy_lacks_are_tensors(self):
        session = transposed("bf16")
        self.assertIsNone(session.inputs[0].dtype)
        x = candela.Tensor((2, 3), "bf16")
        memoryview_of = np.ndarray((2, 3), np.uint16, x)
        memoryview_of[:] = [[1, 2, 3], [4, 5, 6]]
        y = session(x)
        self.assertIsInstance(y, candela.Tensor)
        self.assertEqual((y.type, y.shape), ("bf16", (3, 2)))
        np.testing.assert_array_equal(np.ndarray((3, 2), np.uint16, y), memoryview_of.T)
        with self.assertRaisesRegex(candela.UnsupportedError, "NumPy has no bfloat16 here"):
            y.numpy()

    def test_without_numpy_arrays_come_by_the_buffer_protocol(self):
        session = common.compile_text(b"""graph @main(%x: i64[3]) -> (%y: i64[3] "y") {
          %y = add %x, %x
        }
        """)
        for given in (array.array("q", [1, 2, 3]), memoryview(array.array("q", [1, 2, 3])), np.array([1, 2, 3])):
            self.assertEqual(session(given).tolist(), [2, 4, 6])

    def test_scalars(self):
        session = common.compile_text(b"""graph @main(%x: f32[]) -> (%y: f32[] "y") {
          %y = add %x, %x
        }
        """)
        for x in (np.float32(2), np.array(2, np.float32)):
            self.assertEqual((session(x).shape, float(session(x))), ((), 4))


class Tensors(unittest.TestCase):
    def test_on_the_host(self):
        tensor = candela.Tensor((2, 3), "int16")
        self.assertEqual((tensor.type, tensor.shape, tensor.nbytes, tensor.device, tensor.is_host),
                         ("i16", (2, 3), 12, "host", True))
        view = np.asarray(tensor)
        self.assertEqual((view.dtype, view.sum()), (np.int16, 0))
        view[1, 2] = 7
        self.assertEqual(tensor.numpy()[1, 2], 7)
        self.assertEqual(view.__array_interface__["data"][0], tensor.address)

    def test_on_devices(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        for backend in common.built("cpu", "template", "npu_sim", "opencl"):
            with self.subTest(backend=backend):
                device = candela.Device(backend)
                self.assertEqual(device.properties["backend"], backend)
                tensor = candela.Tensor((2, 3), np.float32, device)
                self.assertGreaterEqual(device.memory[0], 24)
                self.assertEqual(tensor.device, device.id)
                tensor.write(values)
                np.testing.assert_array_equal(tensor.numpy(), values)
                other = candela.Tensor((2, 3))
                tensor.copy_to(other)
                np.testing.assert_array_equal(other, values)
                session = common.compile_text(common.TWO, devices=[device])
                for run in (session.run, lambda *given: session.submit(*given).result()):
                    result = candela.Tensor((2, 3), "f32", device)
                    run({"x": tensor, "y": tensor}, {"sum": result})
                    np.testing.assert_array_equal(result.numpy(), values * 2)

    def test_freed(self):
        tensor = candela.Tensor((2, 3))
        view = memoryview(tensor)
        with self.assertRaisesRegex(BufferError, "in use by 1 views"):
            tensor.free()
        view.release()
        for look in (np.from_dlpack, candela.Tensor.numpy):  # both keep the memory
            tensor = candela.Tensor((2, 3))
            np.asarray(tensor)[:] = 3
            array = look(tensor)
            tensor.free()
            others = [candela.Tensor((2, 3)) for _ in range(8)]  # of which one would be where that was
            self.assertEqual((array.sum(), len(others)), (18, 8))
        session = common.compile_text(common.TWO)
        x = np.zeros((2, 3), np.float32)
        uses = (lambda: session(tensor, x), lambda: session.submit([x, tensor]), lambda: tensor.write(x),
                lambda: tensor.numpy(), lambda: tensor.__dlpack__(), lambda: tensor.address,
                lambda: session.run([x, x], {"sum": tensor}))
        for use in uses:
            with self.assertRaisesRegex(candela.InvalidArgumentError, "the tensor was freed"):
                use()
        with self.assertRaisesRegex(BufferError, "the tensor was freed"):
            memoryview(tensor)

    def test_freed_while_requests_use_it(self):
        session = common.compile_text(common.LONG)
        x, y = candela.Tensor((1, 1024, 1024)), candela.Tensor((1, 1024, 1024))
        np.asarray(x)[:] = np.eye(1024, dtype=np.float32)
        future = session.submit([x], {"y": y})
        x.free()
        y.free()
        others = [candela.Tensor((1, 1024, 1024)) for _ in range(4)]  # which would be where the first ones were
        for other in others:
            np.asarray(other)[:] = 7
        future.result()
        for other in others:
            self.assertTrue((other.numpy() == 7).all())

    def test_freed_while_it_is_copied(self):
        class Freeing:
            """An array that frees the tensor which it is written to."""

            def __array__(self, dtype=None, copy=None):
                tensor.free()
                return np.zeros((2, 3), np.float32)

        tensor = candela.Tensor((2, 3))
        with self.assertRaisesRegex(candela.InvalidArgumentError, "the tensor was freed"):
            tensor.write(Freeing())
        shape = (2048, 4096)
        source = np.full(shape, 3, np.float32)
        for copies in (lambda tensor, other: tensor.write(source), candela.Tensor.copy_to) * 5:
            tensor, other, begun = candela.Tensor(shape), candela.Tensor(shape), []

            def copy():
                begun.append(True)
                with contextlib.suppress(candela.InvalidArgumentError):
                    copies(tensor, other)

            thread = threading.Thread(target=copy)
            thread.start()
            while not begun:
                pass
            tensor.free()
            other.free()
            thread.join()

    def test_wrong_shapes_and_types(self):
        with self.assertRaisesRegex(candela.InvalidArgumentError, "a dim of -1"):
            candela.Tensor((2, -1))
        with self.assertRaises(candela.InvalidArgumentError):
            candela.Tensor((2**40, 2**40))
        for shape, element in (((2**59,), "f32"), ((2**58,), "f64")):  # whose bits are more than 64 bits count
            with self.assertRaisesRegex(candela.InvalidArgumentError, f"a dim of {shape[0]}"):
                candela.Tensor(shape, element)
        with self.assertRaisesRegex(candela.UnsupportedError, "no element type 'complex64'"):
            candela.Tensor((2,), np.complex64)
        with self.assertRaisesRegex(candela.InvalidArgumentError, r"the tensor is f32\[2\] but f64\[2\] was given"):
            candela.Tensor((2,)).write(np.zeros(2))


class Shared(unittest.TestCase):
    def test_numpy_to_candela(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = candela.from_dlpack(x)
        self.assertEqual(tensor.address, x.__array_interface__["data"][0])
        x[0, 0] = 9
        self.assertEqual(tensor.numpy()[0, 0], 9)
        del x
        self.assertEqual(tensor.numpy()[0, 0], 9)

    def test_candela_to_numpy(self):
        tensor = candela.Tensor((2, 3), "i32")
        shared = np.from_dlpack(tensor)
        self.assertEqual(shared.__array_interface__["data"][0], tensor.address)
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        address = tensor.address
        del tensor
        self.assertEqual((shared.__array_interface__["data"][0], shared.sum()), (address, 0))

    def test_capsules_nobody_takes(self):
        tensor = candela.Tensor((2, 3))
        capsule = tensor.__dlpack__()
        del capsule
        capsule = tensor.__dlpack__()
        candela.from_dlpack(capsule)
        with self.assertRaisesRegex(candela.InvalidArgumentError, "or a used one"):
            candela.from_dlpack(capsule)

    def test_what_dlpack_cannot_share(self):
        x = np.zeros((4, 4), np.float32)
        with self.assertRaisesRegex(candela.UnsupportedError, "with a stride of"):
            candela.from_dlpack(x.T)
        with self.assertRaises(BufferError):
            candela.Tensor((2,)).__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            candela.Tensor((2,)).__dlpack__(dl_device=(2, 0))

    def test_results_share_their_memory(self):
        session = common.compile_text(common.TWO)
        x = np.ones((2, 3), np.float32)
        total, _ = session(x, x)
        tensor = candela.from_dlpack(total)
        self.assertEqual(tensor.address, total.__array_interface__["data"][0])
        with self.assertRaisesRegex(BufferError, "in use by 1 views"):
            total.base.free()

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_torch(self):
        import torch
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        tensor = candela.from_dlpack(x)
        self.assertEqual(tensor.address, x.data_ptr())
        self.assertEqual(torch.from_dlpack(tensor).data_ptr(), x.data_ptr())
        session = common.compile_text(common.TWO)
        for given in (x, x.T.contiguous().T, torch.arange(7, dtype=torch.float32)[1:].reshape(2, 3) - 1):
            np.testing.assert_array_equal(session(given, x)[0], x.numpy() * 2)
        np.testing.assert_array_equal(transposed("bf16")(x.to(torch.bfloat16)).type, "bf16")


if __name__ == "__main__":
    common.main()
