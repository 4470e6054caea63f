# The C++ library for other projects: cmake --install BUILD --component cpp --prefix WHERE, then
# find_package(jali) and target_link_libraries(... jali::jali), #include "jali/api/jali.h"; of a server, which holds no
# secret key, jali::server and "jali/api/server.h"; of the client of a compiled program, jali::client and "jali/api/client.h". Kept out of
# the Python package, which installs everything that is not EXCLUDE_FROM_ALL.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(_targets jali_flags jali_base jali_approx jali_arith jali_random jali_device_core jali_device jali_backend_ops
             jali_backend_cpu jali_backend jali_backend_secret jali_ring jali_params jali_rlwe jali_rlwe_secret jali_lwe jali_lwe_secret
             jali_ckks jali_ckks_secret jali_discrete jali_discrete_secret jali_tfhe jali_tfhe_secret jali_circuits_common jali_circuits_ckks jali_circuits_discrete jali_integers jali_bootstrap jali_bootstrap_secret jali_wire jali_wire_secret
             jali_client jali_client_secret jali_api_server jali_api_secret jali_api)
if(TARGET jali_backend_cuda)
  list(APPEND _targets jali_device_cuda jali_backend_cuda jali_backend_cuda_secret)
endif()
set_target_properties(jali_api PROPERTIES EXPORT_NAME jali)
set_target_properties(jali_api_server PROPERTIES EXPORT_NAME server)
set_target_properties(jali_api_secret PROPERTIES EXPORT_NAME client)
install(TARGETS ${_targets} EXPORT jali COMPONENT cpp EXCLUDE_FROM_ALL
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp EXCLUDE_FROM_ALL)
install(EXPORT jali NAMESPACE jali:: FILE jaliTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/jali COMPONENT cpp EXCLUDE_FROM_ALL)

# What jali.h includes, and nothing of the engines.
install(DIRECTORY src/jali DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.h"
        PATTERN "cpu" EXCLUDE PATTERN "ref" EXCLUDE PATTERN "trace" EXCLUDE
        PATTERN "*_impl.h" EXCLUDE)

set(JALI_CUDART_HINT "")
if(TARGET jali_device_cuda)
  find_library(JALI_CUDART cudart_static HINTS ${_cuda_root}/lib ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES})
  if(JALI_CUDART)
    get_filename_component(JALI_CUDART_HINT ${JALI_CUDART} DIRECTORY)
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/jaliConfig.cmake.in ${CMAKE_BINARY_DIR}/jaliConfig.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/jaliConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/jaliConfig.cmake ${CMAKE_BINARY_DIR}/jaliConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/jali COMPONENT cpp EXCLUDE_FROM_ALL)
