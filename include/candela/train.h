/* Gradients of models, and training them: the third part of the embedding API. C11. The words of
 * async.h hold here too (Ownership, Threads, Errors, Lifetime).
 *
 *   candela_training_t training = CANDELA_TRAINING_INIT;
 *   candela_trainer_t* trainer;
 *   candela_trainer_create("digits.onnx", &training, &options, &trainer, error, sizeof error);
 *   const candela_tensor_t batch[] = {images, labels};
 *   for (...)
 *     candela_trainer_step(trainer, batch, 2, 0.001, &loss, error, sizeof error);
 *   candela_trainer_save(trainer, "trained.onnx", error, sizeof error);
 *   candela_trainer_free(trainer);
 *
 * A step is compiled once for the backends of the options. Parameters and what the optimizer keeps
 * of them stay where the backend has them, and are updated in place where it can; a step brings
 * its batch and takes the loss back. docs/tour/training.md says what is trained. */
#ifndef CANDELA_TRAIN_H
#define CANDELA_TRAIN_H

#include <candela/candela.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Gradients --------------------------------------------------------------------------------
 */

/* Compiles a .onnx, .tflite or .cdl file whose outputs are replaced: by the one that `of` names
 * (NULL: the only one of floats), then by its gradient with respect to each name of `wrt`, an
 * output d_NAME of the same type. Names of `wrt`, ended by NULL, are inputs or, of files of models,
 * initializers, of floats; NULL: all such inputs. Where the output has more than one element there
 * is an input d_OUTPUT of its type too, behind the others: the gradients are those of
 * sum(output * d_output).
 * Ownership: *model is the caller's, for candela_free
 * Threads: any
 * Errors: as candela_compile; CANDELA_INVALID_ARGUMENT a name that is none, or of no floats;
 * CANDELA_UNSUPPORTED with node, op and reason, where an op has no gradient
 * Lifetime: of the model: its own */
CANDELA_API candela_status_t candela_compile_gradients(const char* path, const char* of,
                                                       const char* const* wrt,
                                                       const candela_options_t* options,
                                                       candela_model_t** model, char* error,
                                                       size_t error_size);
/* The same of a file's content, with `name` as in candela_compile_memory. */
CANDELA_API candela_status_t candela_compile_gradients_memory(
    const void* data, size_t bytes, const char* name, const char* of, const char* const* wrt,
    const candela_options_t* options, candela_model_t** model, char* error, size_t error_size);

/* ---- Training ---------------------------------------------------------------------------------
 */

typedef struct candela_trainer candela_trainer_t;

typedef struct {
  uint32_t struct_size; /* sizeof(candela_training_t): set by CANDELA_TRAINING_INIT */
  uint32_t flags;       /* CANDELA_TRAIN_* */
  /* "cross_entropy" of scores [batch, classes, ..] and labels as integers, or "mse"; NULL: the
   * first */
  const char* loss;
  const char* output;    /* that the loss is of; NULL: the only one */
  const char* optimizer; /* "sgd", "momentum", "adam" or "adamw"; NULL: "adam" */
  /* Globs of parameters, or of nodes that read them, that stay as they are, ended by NULL. */
  const char* const* freeze;
  double momentum;     /* of "momentum", 0 to 1: how much of the last step goes on */
  double weight_decay; /* how fast parameters shrink by themselves, from 0 */
  double clip_norm;    /* the longest that all gradients together may be; 0: no limit */
  uint64_t seed;       /* with CANDELA_TRAIN_RANDOM */
} candela_training_t;

#define CANDELA_TRAIN_RANDOM 1u /* begin with random parameters, by `seed` */
#define CANDELA_TRAINING_INIT                                                                      \
  {(uint32_t)sizeof(candela_training_t), 0, NULL, NULL, NULL, NULL, 0.9, 0, 0, 0}

/* Compiles a step of training of an .onnx file: its model, the loss, the gradients and the
 * optimizer. training NULL: what is usual. Of the options dims and shapes say the batch; states,
 * CANDELA_FLAG_BIND_AT_RUN, CANDELA_FLAG_KEEP_VALUES and the reference are not allowed.
 * Ownership: *trainer is the caller's, for candela_trainer_free
 * Threads: any
 * Errors: as candela_compile; CANDELA_INVALID_ARGUMENT where the output does not fit the loss, or
 * nothing is left to train; CANDELA_UNSUPPORTED where a node has no gradient
 * Lifetime: until candela_trainer_free */
CANDELA_API candela_status_t candela_trainer_create(const char* path,
                                                    const candela_training_t* training,
                                                    const candela_options_t* options,
                                                    candela_trainer_t** trainer, char* error,
                                                    size_t error_size);
/* The same of a file's content, which is copied, with `name` as in candela_compile_memory. */
CANDELA_API candela_status_t candela_trainer_create_memory(
    const void* data, size_t bytes, const char* name, const candela_training_t* training,
    const candela_options_t* options, candela_trainer_t** trainer, char* error, size_t error_size);
/* Takes the trainer; NULL is allowed. */
CANDELA_API void candela_trainer_free(candela_trainer_t* trainer);

/* What a step takes: the model's inputs in their order, then the labels. Names and descriptions as
 * of candela_input. 0 and NULL where there are none. */
CANDELA_API uint32_t candela_trainer_input_count(const candela_trainer_t* trainer);
CANDELA_API const char* candela_trainer_input(const candela_trainer_t* trainer, uint32_t index,
                                              candela_tensor_t* description);
/* The parameters, those of batch norms that follow the batches among them, in the order of the
 * nodes that read them. */
CANDELA_API uint32_t candela_trainer_parameter_count(const candela_trainer_t* trainer);
CANDELA_API const char* candela_trainer_parameter(const candela_trainer_t* trainer, uint32_t index,
                                                  candela_tensor_t* description);

/* One step: inputs[i] has the type and dims that candela_trainer_input gives; labels that are
 * classes may be of any type of integers. *loss is that of the batch before the step; it may be no
 * number, and then the parameters are none either.
 * Ownership: data is the caller's and is touched during the call alone
 * Threads: one at a time for each trainer
 * Errors: CANDELA_INVALID_ARGUMENT a tensor that does not fit, a class that the model has not, a
 * learning rate below 0; nothing is changed then. A backend's: the states hold anything
 * Lifetime: none */
CANDELA_API candela_status_t candela_trainer_step(candela_trainer_t* trainer,
                                                  const candela_tensor_t* inputs,
                                                  uint32_t input_count, double learning_rate,
                                                  double* loss, char* error, size_t error_size);
/* Copies what a parameter holds now to output->data, as candela_run writes an output; data NULL
 * and bytes 0: the library allocates it, for candela_free_data.
 * Threads: one at a time for each trainer
 * Errors: CANDELA_INVALID_ARGUMENT an index, or too few bytes; a backend's */
CANDELA_API candela_status_t candela_trainer_read(candela_trainer_t* trainer, uint32_t index,
                                                  candela_tensor_t* output, char* error,
                                                  size_t error_size);
/* Writes the model as it was read, an .onnx file, with what was learned as its initializers. A file
 * that is there survives a failure.
 * Threads: one at a time for each trainer
 * Errors: CANDELA_INVALID_ARGUMENT a parameter that is not finite; CANDELA_IO; a backend's */
CANDELA_API candela_status_t candela_trainer_save(candela_trainer_t* trainer, const char* path,
                                                  char* error, size_t error_size);
/* As candela_report_json, of a step. Lives as long as the trainer. */
CANDELA_API const char* candela_trainer_report_json(const candela_trainer_t* trainer);

#ifdef __cplusplus
}
#endif

#endif
