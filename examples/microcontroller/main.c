/* Reads ten handwritten digits on a board without an operating system: no heap, no files, the
 * weights in flash. What the board has for printing is semihosting here; a product would use its
 * own. */
#include "digits.h"
#include "images.h"

#include <stdio.h>

/* Zeroed by the start-up code, and never allocated: the arena lies here. */
static unsigned char arena[DIGITS_ARENA_BYTES] __attribute__((aligned(DIGITS_ARENA_ALIGNMENT)));

static int read_digit(const digits_model* model, const uint8_t* image) {
  float ink[DIGITS_INPUT_IMAGES_COUNT], scores[DIGITS_OUTPUT_SCORES_COUNT];
  const digits_inputs inputs = {ink};
  const digits_outputs outputs = {scores};
  int best = 0;
  for (int p = 0; p < PIXELS; ++p) ink[p] = (float)image[p] / 16;
  if (digits_run(model, &inputs, &outputs) != DIGITS_OK) return -1;
  for (int d = 1; d < (int)DIGITS_OUTPUT_SCORES_COUNT; ++d)
    if (scores[d] > scores[best]) best = d;
  return best;
}

int main(void) {
  digits_model model;
  int right = 0;
  int32_t code =
      digits_verify(digits_weights, DIGITS_WEIGHTS_BYTES); /* once after a start, if at all */
  if (code == DIGITS_OK)
    code = digits_open(&model, digits_weights, DIGITS_WEIGHTS_BYTES, arena, sizeof arena);
  if (code != DIGITS_OK) {
    printf("the model does not open: error %d\n", (int)code);
    return 1;
  }
  for (int i = 0; i < IMAGES; ++i) {
    const int digit = read_digit(&model, images[i]);
    printf("image %d shows %d, read %d\n", i, labels[i], digit);
    right += digit == labels[i];
  }
  printf("%d of %d\n", right, IMAGES);
  return right == IMAGES ? 0 : 1;
}
