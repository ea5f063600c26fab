module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x7xf32>) -> (tensor<2x7xf32> {jax.result_info = "result[0]"}, tensor<6x3xf32> {jax.result_info = "result[1]"}, tensor<6x7xf32> {jax.result_info = "result[2]"}, tensor<2x6xf32> {jax.result_info = "result[3]"}, tensor<6x7xf32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.slice %arg0 [1:5:2, 0:7] : (tensor<6x7xf32>) -> tensor<2x7xf32>
    %1 = stablehlo.slice %arg0 [0:6, 0:7:3] : (tensor<6x7xf32>) -> tensor<6x3xf32>
    %2 = stablehlo.reverse %arg0, dims = [0] : tensor<6x7xf32>
    %3 = stablehlo.slice %arg0 [4:6, 0:6] : (tensor<6x7xf32>) -> tensor<2x6xf32>
    %4 = call @_flip(%arg0) : (tensor<6x7xf32>) -> tensor<6x7xf32>
    return %0, %1, %2, %3, %4 : tensor<2x7xf32>, tensor<6x3xf32>, tensor<6x7xf32>, tensor<2x6xf32>, tensor<6x7xf32>
  }
  func.func private @_flip(%arg0: tensor<6x7xf32>) -> tensor<6x7xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<6x7xf32>
    return %0 : tensor<6x7xf32>
  }
}
