module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xi32> {jax.result_info = "result[0]"}, tensor<3x4xui32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xui32>
    %c = stablehlo.constant dense<3> : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<3x4xui32>
    %3 = stablehlo.shift_right_logical %1, %2 : tensor<3x4xui32>
    return %0, %3 : tensor<3x4xi32>, tensor<3x4xui32>
  }
}
