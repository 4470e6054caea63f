#include "files.h"

#include "arguments.h"
#include "interrupts.h"

namespace jali::python {

std::filesystem::path path_of(nb::handle file, const char* wanted) {
  // os.fsencode takes what open() takes, except for numbers of open files.
  PyObject* encoded = PyBool_Check(file.ptr()) || PyLong_Check(file.ptr()) ? nullptr : [&] {
    PyObject* bytes = nullptr;
    return PyUnicode_FSConverter(file.ptr(), &bytes) != 0 ? bytes : nullptr;
  }();
  if (encoded == nullptr) {
    PyErr_Clear();
    refuse("the file", wanted, file);
  }
  const auto bytes = nb::steal<nb::bytes>(encoded);
  return std::string(bytes.c_str(), bytes.size());
}

namespace {

/// Throws InvalidArgument for a stream that takes or gives no bytes. ability: "readable" or
/// "writable"; mode: of open().
void require_bytes(nb::handle file, const char* ability, const char* mode) {
  const auto refused = [&](const char* why) {
    throw InvalidArgument(std::string("the file is ") + why +
                          ": open it in binary mode, open(path, \"" + mode + "\")");
  };
  if (nb::hasattr(file, "encoding")) refused("open for text");
  if (!nb::isinstance(file, nb::module_::import_("io").attr("IOBase"))) return;
  if (nb::bool_(file.attr("closed")).ptr() == Py_True) refused("closed");
  if (nb::bool_(file.attr(ability)()).ptr() != Py_True) {
    refused((std::string("not ") + ability).c_str());
  }
}

}  // namespace

void save_to(nb::handle file, const std::function<void(const wire::Sink&)>& write) {
  const Checkpoint checkpoint = interrupts();
  if (nb::hasattr(file, "write")) {
    require_bytes(file, "writable", "wb");
    const auto take = nb::borrow(nb::getattr(file, "write"));
    const nb::gil_scoped_release release;
    write([&](std::span<const std::uint8_t> bytes) {
      const nb::gil_scoped_acquire gil;
      std::size_t done = 0;
      while (done < bytes.size()) {  // a raw file may take a part
        const auto rest = bytes.subspan(done);
        const nb::object taken =
            take(nb::bytes(reinterpret_cast<const char*>(rest.data()), rest.size()));
        std::size_t count = rest.size();
        if (!taken.is_none()) nb::try_cast(taken, count);
        require<FileError>(count > 0 && count <= rest.size(), "the file took no more bytes");
        done += count;
      }
    });
    return;
  }
  const std::filesystem::path path = path_of(file, "a path or a file opened with \"wb\"");
  const nb::gil_scoped_release release;
  replace_file(path, Readers::umask, [&](const wire::Sink& sink) {
    write([&](std::span<const std::uint8_t> bytes) {
      // A frame comes as a whole or in pieces; a signal is seen between these.
      for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), wire::kPieceBytes))) {
        if (checkpoint) checkpoint();
        sink(bytes.first(std::min(bytes.size(), wire::kPieceBytes)));
      }
    });
  });
}

bool is_readable(nb::handle file) { return nb::hasattr(file, "read"); }

wire::Source source_of(nb::handle file) {
  require_bytes(file, "readable", "rb");
  return {[file](std::span<std::uint8_t> out) {
            const nb::gil_scoped_acquire gil;
            const nb::object got = file.attr("read")(out.size());
            require<InvalidArgument>(PyBytes_Check(got.ptr()) != 0,
                                     "the file gave no bytes: open it with \"rb\", not as text");
            const auto bytes = nb::borrow<nb::bytes>(got);
            require<FileError>(bytes.size() <= out.size(),
                               "the file's read(count) gave more bytes than it was asked");
            std::copy_n(bytes.c_str(), bytes.size(), reinterpret_cast<char*>(out.data()));
            return bytes.size();
          },
          std::nullopt};
}

}  // namespace jali::python
