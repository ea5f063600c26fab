module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<4x3x5xf32>) -> (tensor<2x5xf32> {jax.result_info = "result[0]"}, tensor<5x3x2xf32> {jax.result_info = "result[1]"}, tensor<2x3x3x5xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1, 2] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<4x3x5xf32>) -> tensor<2x5xf32>
    %1 = stablehlo.dot_general %arg1, %arg0, batching_dims = [1] x [1], contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x3x5xf32>, tensor<2x3x4xf32>) -> tensor<3x5x2xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<3x5x2xf32>) -> tensor<5x3x2xf32>
    %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<4x3x5xf32>) -> tensor<2x3x3x5xf32>
    return %0, %2, %3 : tensor<2x5xf32>, tensor<5x3x2xf32>, tensor<2x3x3x5xf32>
  }
}
