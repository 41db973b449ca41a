// Calling a kernel whose parameters are known only as an array of pointers to their values, as
// cuLaunchKernel takes them. build_unit.py appends one entry per launched kernel.
#pragma once

#include <utility>

namespace kopt_sim {

template <class... Parameters, std::size_t... Index>
__attribute__((no_sanitize_thread)) inline void invoke_with(void (*kernel)(Parameters...),
                                                            void** values,
                                                            std::index_sequence<Index...>) {
  kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<Parameters>>*>(values[Index])...);
}

template <class... Parameters>
__attribute__((no_sanitize_thread)) inline void invoke(void (*kernel)(Parameters...),
                                                       void** values) {
  invoke_with(kernel, values, std::index_sequence_for<Parameters...>{});
}

}  // namespace kopt_sim
