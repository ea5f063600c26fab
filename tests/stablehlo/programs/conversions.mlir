module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xi32>) -> (tensor<3x4xi32> {jax.result_info = "result[0]"}, tensor<3x4xi8> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}, tensor<3x4xi16> {jax.result_info = "result[3]"}, tensor<3x4xi1> {jax.result_info = "result[4]"}, tensor<3x4xi32> {jax.result_info = "result[5]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %1 = stablehlo.convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi8>
    %2 = stablehlo.convert %arg1 : (tensor<3x4xi32>) -> tensor<3x4xf32>
    %3 = stablehlo.convert %arg1 : (tensor<3x4xi32>) -> tensor<3x4xi16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %5 = stablehlo.compare NE, %arg1, %4, SIGNED : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %6 = stablehlo.convert %5 : tensor<3x4xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %8 = stablehlo.compare GT, %arg0, %7, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %9 = stablehlo.convert %8 : (tensor<3x4xi1>) -> tensor<3x4xi32>
    return %0, %1, %2, %3, %6, %9 : tensor<3x4xi32>, tensor<3x4xi8>, tensor<3x4xf32>, tensor<3x4xi16>, tensor<3x4xi1>, tensor<3x4xi32>
  }
}
