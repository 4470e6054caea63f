// What the operations on encrypted integers share: checks of their operands, keys of their
// circuits, and the ways in which their circuits find carries.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "jali/integers/carries.h"

namespace jali::integers {

/// The ways to find carries that are compared: deep and few, or flat and many.
inline constexpr Carries carries_of[] = {{0}, {4}, {8}, {Carries::one_by_one}};
inline constexpr std::size_t ways = std::size(carries_of);

std::string text(Wide number);
std::string name(IntegerType type);
/// Throw InvalidArgument and say what to change, if there is no such type, or if a clear value is
/// no number of it.
void check_type(IntegerType type);
void check_values(std::span<const Wide> values, IntegerType type);

/// Append what a circuit depends on to its key.
void append(std::string& key, const void* data, std::size_t bytes);
void append(std::string& key, IntegerType type);

/// Integer i of a word that has the digits of several.
Word part(const Word& words, std::size_t i, IntegerType type, int m);
/// A number of type `boolean`.
Word bit(Form form);

}  // namespace jali::integers
