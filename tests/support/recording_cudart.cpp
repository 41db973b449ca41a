// The CUDA runtime functions that an exported launcher calls, which write down what they are asked
// instead: one line a call on stdout. There is no device; a multiprocessor holds 3 blocks, a device
// has 10 of them.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

namespace {

std::map<const void*, std::string>& kernels() {
  static std::map<const void*, std::string> names;
  return names;
}

}  // namespace

// How many arguments the next launch has: nothing else knows.
int recorded_arguments = 0;

extern "C" {

void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* device, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  kernels()[host] = device;
}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st*) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaSuccess; }
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 10;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  std::printf("attribute %s %d %d\n", kernels()[kernel].c_str(), attribute, value);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*,
                                                                   int threads, size_t smem,
                                                                   unsigned) {
  std::printf("occupancy %d %zu\n", threads, smem);
  *blocks = 3;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t stream) {
  std::printf("memset %zu %d %zu %zu\n", reinterpret_cast<size_t>(place), value, bytes,
              reinterpret_cast<size_t>(stream));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
  const dim3 grid = config->gridDim, block = config->blockDim;
  std::printf("launch %s grid %u %u %u block %u %u %u smem %zu stream %zu",
              kernels()[kernel].c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
              config->dynamicSmemBytes, reinterpret_cast<size_t>(config->stream));
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = config->attrs[i].val;
    switch (config->attrs[i].id) {
      case cudaLaunchAttributeClusterDimension:
        std::printf(" cluster %u %u %u", value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        break;
      case cudaLaunchAttributeCooperative:
        std::printf(" cooperative %d", value.cooperative);
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        std::printf(" programmatic %d", value.programmaticStreamSerializationAllowed);
        break;
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        std::printf(" carveout %u", value.sharedMemCarveout);
        break;
      default:
        std::printf(" unknown %d", config->attrs[i].id);
    }
  }
  std::printf(" args");
  for (int i = 0; i < recorded_arguments; ++i) {
    std::uint32_t low;
    std::memcpy(&low, args[i], sizeof low);
    std::printf(" %u", low);
  }
  std::printf("\n");
  return cudaSuccess;
}

}  // extern "C"
