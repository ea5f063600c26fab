"""llama.cpp as a peer of llm_speed.py, where it is installed: Q4_0, by the C interface that llama-cpp-python hands on.

That interface and not the package's own class, since the latter copies and samples in Python: what is timed is a call of
llama_decode and the search for the largest logit, which the ONNX models do by their ArgMax.
"""
import ctypes
import pathlib
import sys
import time

import numpy as np

LOG_ERROR = 4  # GGML_LOG_LEVEL_ERROR

try:
    import gguf_model
    import llama_cpp
    MISSING = None
except ImportError as error:
    MISSING = f"llama.cpp is not measured: {error}; pip install -r benchmarks/llm/requirements.txt"
else:
    @llama_cpp.llama_log_callback
    def say_errors(level, text, _):
        if level == LOG_ERROR:
            sys.stderr.write(text.decode())

    llama_cpp.llama_log_set(say_errors, None)  # else it says each tensor that it loads
    llama_cpp.llama_backend_init()


def ggml_version():
    """Of the library with the products; llama.cpp itself has no version that a program can ask for."""
    library = ctypes.CDLL(str(next(pathlib.Path(llama_cpp.__file__).parent.glob("lib/libggml-base.so*"))))
    library.ggml_version.restype = ctypes.c_char_p
    return library.ggml_version().decode()


def about():
    """What of llama.cpp was measured, or why it was not."""
    if MISSING:
        return {"measured": False, "reason": MISSING}
    return {"measured": True, "llama_cpp_python": llama_cpp.__version__, "ggml": ggml_version(),
            "features": llama_cpp.llama_print_system_info().decode().strip(), "quantization": "Q4_0",
            "scales": "f16", "activations": "rounded to 8 bits by blocks of 32 (Q8_0)", "embedding": "f32", "cache": "f16"}


class LlamaCpp:
    """A model with a cache of `capacity` places; how attention is computed is its own choice."""

    def __init__(self, path, capacity, threads):
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = capacity
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F16  # its default
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError(f"llama.cpp has no context for {path}")
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def close(self):
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)

    def run(self, tokens):
        """Milliseconds of the tokens, the next one, and its logits, which are valid until the next run."""
        numbers = (llama_cpp.llama_token * len(tokens))(*tokens)  # the batch points to them
        batch = llama_cpp.llama_batch_get_one(numbers, len(tokens))
        start = time.perf_counter()
        status = llama_cpp.llama_decode(self.context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode: {status}")
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), (self.vocabulary,))
        token = int(logits.argmax())
        return (time.perf_counter() - start) * 1e3, token, logits

    def generate(self, prompt, count):
        """As the others do: the prompt once to warm up and once to be timed, then so many tokens, each of the one before."""
        self.run(prompt)
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        prompt_ms, token, logits = self.run(prompt)
        times, tokens, logits = [], [token], logits.copy()
        for _ in range(count):
            ms, token, _ = self.run([token])
            times.append(ms)
            tokens.append(token)
        return {"prompt_ms": prompt_ms, "token_ms": sorted(times)[len(times) // 2], "tokens": tokens, "logits": logits}
