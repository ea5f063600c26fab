module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}, tensor<3x4xf32> {jax.result_info = "result[3]"}, tensor<3x4xf32> {jax.result_info = "result[4]"}, tensor<3x4xf32> {jax.result_info = "result[5]"}) {
    %0 = chlo.sinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %1 = chlo.cosh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = stablehlo.tanh %arg0 : tensor<3x4xf32>
    %3 = chlo.asinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %5 = stablehlo.add %arg0, %4 : tensor<3x4xf32>
    %6 = call @arccosh(%5) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %7 = chlo.atanh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    return %0, %1, %2, %3, %6, %7 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
  func.func private @arccosh(%arg0: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = chlo.acosh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
