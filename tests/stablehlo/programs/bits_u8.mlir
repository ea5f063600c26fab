module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<9xui8>, %arg1: tensor<9xui8>) -> (tensor<9xui8> {jax.result_info = "result[0]"}, tensor<9xui8> {jax.result_info = "result[1]"}, tensor<9xui8> {jax.result_info = "result[2]"}, tensor<9xui8> {jax.result_info = "result[3]"}, tensor<9xui8> {jax.result_info = "result[4]"}, tensor<9xui8> {jax.result_info = "result[5]"}) {
    %0 = stablehlo.and %arg0, %arg1 : tensor<9xui8>
    %1 = stablehlo.shift_left %arg0, %arg1 : tensor<9xui8>
    %2 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<9xui8>
    %3 = stablehlo.popcnt %arg0 : tensor<9xui8>
    %4 = stablehlo.count_leading_zeros %arg0 : tensor<9xui8>
    %5 = stablehlo.add %arg0, %arg1 : tensor<9xui8>
    return %0, %1, %2, %3, %4, %5 : tensor<9xui8>, tensor<9xui8>, tensor<9xui8>, tensor<9xui8>, tensor<9xui8>, tensor<9xui8>
  }
}
