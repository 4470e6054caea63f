// Where the elements of an array lie, inside the payload of a ciphertext of any scheme of slots.
#pragma once

#include <cstddef>

#include "jali/schemes/ckks/view.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

inline constexpr std::size_t kViewBytes = 9 + 8 * ckks::View::kMostAxes;  // at most

void write_view(Writer& writer, const ckks::View& view);
/// The caller checks where its elements lie.
ckks::View read_view(Reader& reader);

}  // namespace jali::wire
