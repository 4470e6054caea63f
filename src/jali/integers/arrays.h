// Arrays that are read at an encrypted index.
#pragma once

#include <span>
#include <vector>

#include "jali/integers/word.h"

namespace jali::integers {

/// Flag i is 1 if the index is i, for i < count.
std::vector<Form> one_hot(Builder& b, std::span<const Form> index, std::size_t count);
/// table[index] of clear numbers of a type, or 0 if there is none.
Word read(Builder& b, const Word& index, std::span<const Wide> table, IntegerType type);
/// The same of encrypted numbers.
Word read(Builder& b, const Word& index, std::span<const Word> table);

}  // namespace jali::integers
