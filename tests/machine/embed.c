/* embed MODEL BUNDLE: all that the embedding API does with a model: compile, describe, run, trace,
 * save, load. What fails is told as by the tool, with exit status 1. */
#include <candela/candela.h>

#include <stdio.h>
#include <string.h>

static char zeros[1 << 16];

static int told(candela_status_t status, const char* error) {
  if (status != CANDELA_OK) fprintf(stderr, "error: %s\n", error);
  return status != CANDELA_OK;
}

static int use(const candela_model_t* model, char* error, size_t size) {
  candela_tensor_t in, out;
  memset(&in, 0, sizeof in);
  memset(&out, 0, sizeof out);
  candela_input(model, 0, &in);
  if (in.bytes > sizeof zeros) return told(CANDELA_INTERNAL, "the input is larger than it was");
  in.data = zeros;
  if (told(candela_run(model, &in, 1, &out, 1, error, size), error)) return 1;
  candela_free_data(out.data);
  candela_free_text(candela_trace_json(model));
  return 0;
}

int main(int argc, char** argv) {
  char error[512] = "";
  const char* const dims[] = {"N=1", NULL};
  candela_options_t options = CANDELA_OPTIONS_INIT;
  candela_model_t* model = NULL;
  options.dims = dims;
  if (argc != 3) return 2;
  if (told(candela_compile(argv[1], &options, &model, error, sizeof error), error)) return 1;
  int failed = use(model, error, sizeof error) ||
               told(candela_save(model, argv[2], error, sizeof error), error);
  candela_free(model);
  if (failed || told(candela_load(argv[2], &model, error, sizeof error), error)) return 1;
  failed = use(model, error, sizeof error);
  candela_free(model);
  return failed;
}
