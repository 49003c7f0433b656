// runner executes ExecuTorch programs for Lathe's tests and for `lathe run --engine executorch`.
//
// It links the stock runtime of the ExecuTorch wheel (optimized and quantized kernels, the XNNPACK delegate, the thread
// pool) and nothing of PyTorch. It is a separate process because kernels and delegates abort on bad input: a crash here
// must become an error there.
//
//   runner --kernels | --backends     list what the linked libraries register, one a line, and exit
//   runner [--threads N] [--poison]   serve frames on stdin/stdout; --poison fills planned memory with 0xA5 instead of
//                                     zeros, so that a program which reads what nobody wrote is found out
//
// A frame is a little-endian u32 length and that many bytes. Every request starts with its command byte and is answered
// by one frame:
//
//   reply   = u32 error, str errorName, str stage, str log, then the body when error is 0
//   str     = u32 n, n bytes
//   value   = u8 tag (the runtime's own Tag numbers), then by tag
//             1 tensor: u8 dtype, u8 rank, i64 size[rank], u8 dimOrder[rank], u64 n, n bytes
//             2 str     3 f64     4 i64     5 u8
//             6 bools: u32 n, u8 each   7 doubles: u32 n, f64 each   8 ints: u32 n, i64 each
//             9 tensors: u32 n, tensor each   11 optional tensors: u32 n, (u8 present, tensor) each
//   values  = u32 n, value each
//   meta    = u8 tag, str name, u8 isTensor, then for tensors u8 dtype, u8 rank, i64 size[], u8 dimOrder[], u8 planned
//
//   'L' str program, str data ("" for none)          -> nothing
//   'M'                                              -> u32 n, each: str name, u32 ins, meta[], u32 outs, meta[],
//                                                       u32 arenas, i64 bytes[], u32 backends, str[], u64 instructions
//   'P' str method                                   -> nothing; prepares the method (delegates, operators)
//   'R' str method, values                           -> values
//   'B' str method, values, u32 warmup, u32 rounds   -> u32 n, u64 nanoseconds each
//   'K' str kernel, values (outputs included)        -> values as the kernel left them
//
// State lives in the method: calls of one process carry it on, as the stock Module does.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

// The wheel ships the thread pool's library without its header; these are the two entry points needed of it.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace {

namespace etr = executorch::runtime;
namespace ext = executorch::extension;
using executorch::aten::ArrayRef;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using etr::BoxedEvalueList;
using etr::Error;
using etr::EValue;
using etr::Tag;

constexpr uint32_t kProtocol = 1;
constexpr size_t kLogLimit = 32 << 10;

std::string g_log;     // what the runtime said since the request began
bool g_poison = false;

void emit_log(et_timestamp_t, et_pal_log_level_t level, const char* file, const char*, size_t line,
              const char* message, size_t length) {
  if (level != kError && level != kFatal) return;
  const char* base = std::strrchr(file, '/');
  std::string text = std::string(base ? base + 1 : file) + ":" + std::to_string(line) + ": " + std::string(message, length);
  std::fprintf(stderr, "%s\n", text.c_str());
  if (g_log.size() < kLogLimit) g_log += text + "\n";
}

// Malformed frames come only from a driver of another version: end at once with a reason.
[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "runner: %s\n", why);
  std::exit(3);
}

struct Reader {
  const uint8_t* p;
  const uint8_t* end;
  const uint8_t* take(size_t n) {
    if (size_t(end - p) < n) die("frame too short");
    const uint8_t* r = p;
    p += n;
    return r;
  }
  template <typename T>
  T get() {
    T v;
    std::memcpy(&v, take(sizeof v), sizeof v);
    return v;
  }
  std::string str() {
    uint32_t n = get<uint32_t>();
    return std::string(reinterpret_cast<const char*>(take(n)), n);
  }
};

struct Writer {
  std::vector<uint8_t> b;
  void raw(const void* p, size_t n) {
    auto* q = static_cast<const uint8_t*>(p);
    b.insert(b.end(), q, q + n);
  }
  template <typename T>
  void put(T v) {
    raw(&v, sizeof v);
  }
  void str(const std::string& s) {
    put<uint32_t>(s.size());
    raw(s.data(), s.size());
  }
};

// Holds everything the EValues of one request point into.
struct Values {
  struct Held {
    std::vector<int32_t> sizes, strides;
    std::vector<uint8_t> order;
    void* data = nullptr;
    std::unique_ptr<TensorImpl> impl;
    ~Held() { std::free(data); }
  };
  std::deque<Held> tensors;
  std::deque<std::string> strings;
  std::deque<std::vector<double>> doubles;
  std::deque<std::unique_ptr<bool[]>> bools;
  std::deque<std::vector<EValue>> items;
  std::deque<std::vector<EValue*>> pointers;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<Tensor>> lists;
  std::deque<std::vector<std::optional<Tensor>>> optionals;
  std::deque<BoxedEvalueList<int64_t>> boxedInts;
  std::deque<BoxedEvalueList<Tensor>> boxedTensors;
  std::deque<BoxedEvalueList<std::optional<Tensor>>> boxedOptionals;
  std::deque<ArrayRef<char>> chars;
  std::deque<ArrayRef<double>> doubleRefs;
  std::deque<ArrayRef<bool>> boolRefs;
  std::vector<EValue> values;

  Tensor tensor(Reader& r) {
    Held& h = tensors.emplace_back();
    auto dtype = static_cast<ScalarType>(r.get<int8_t>());
    uint8_t rank = r.get<uint8_t>();
    for (int i = 0; i < rank; i++) h.sizes.push_back(int32_t(r.get<int64_t>()));
    for (int i = 0; i < rank; i++) h.order.push_back(r.get<uint8_t>());
    h.strides.assign(rank, 1);
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
      if (h.order[i] >= rank) die("dim order out of range");
      h.strides[h.order[i]] = int32_t(step);
      step *= h.sizes[h.order[i]] > 0 ? h.sizes[h.order[i]] : 1;
    }
    uint64_t n = r.get<uint64_t>();
    // 64 spare bytes: vector loads past the end of a tensor are the kernels' habit, not a fault of the program.
    h.data = std::aligned_alloc(64, (n + 64 + 63) / 64 * 64);
    if (h.data == nullptr) die("out of memory for an input");
    std::memcpy(h.data, r.take(n), n);
    h.impl = std::make_unique<TensorImpl>(dtype, rank, h.sizes.data(), h.data, h.order.data(), h.strides.data(),
                                          executorch::aten::TensorShapeDynamism::DYNAMIC_BOUND);
    if (h.impl->nbytes() != n) die("tensor bytes do not fit its shape");
    return Tensor(h.impl.get());
  }

  EValue value(Reader& r) {
    switch (static_cast<Tag>(r.get<uint8_t>())) {
      case Tag::None:
        return EValue();
      case Tag::Tensor:
        return EValue(tensor(r));
      case Tag::String: {
        std::string& s = strings.emplace_back(r.str());
        return EValue(&chars.emplace_back(s.data(), s.size()));
      }
      case Tag::Double:
        return EValue(r.get<double>());
      case Tag::Int:
        return EValue(r.get<int64_t>());
      case Tag::Bool:
        return EValue(r.get<uint8_t>() != 0);
      case Tag::ListBool: {
        uint32_t n = r.get<uint32_t>();
        auto& v = bools.emplace_back(new bool[n ? n : 1]);
        for (uint32_t i = 0; i < n; i++) v[i] = r.get<uint8_t>() != 0;
        return EValue(&boolRefs.emplace_back(v.get(), n));
      }
      case Tag::ListDouble: {
        uint32_t n = r.get<uint32_t>();
        auto& v = doubles.emplace_back(n);
        for (auto& d : v) d = r.get<double>();
        return EValue(&doubleRefs.emplace_back(v.data(), n));
      }
      case Tag::ListInt: {
        uint32_t n = r.get<uint32_t>();
        auto& cells = items.emplace_back();
        for (uint32_t i = 0; i < n; i++) cells.emplace_back(r.get<int64_t>());
        auto& ptrs = pointersTo(cells);
        auto& room = ints.emplace_back(n + 1);
        return EValue(&boxedInts.emplace_back(ptrs.data(), room.data(), int(n)));
      }
      case Tag::ListTensor: {
        uint32_t n = r.get<uint32_t>();
        auto& cells = items.emplace_back();
        for (uint32_t i = 0; i < n; i++) cells.emplace_back(tensor(r));
        auto& ptrs = pointersTo(cells);
        auto& room = lists.emplace_back(n + 1, Tensor(nullptr));
        return EValue(&boxedTensors.emplace_back(ptrs.data(), room.data(), int(n)));
      }
      case Tag::ListOptionalTensor: {
        uint32_t n = r.get<uint32_t>();
        auto& cells = items.emplace_back();
        for (uint32_t i = 0; i < n; i++) {
          if (r.get<uint8_t>() != 0) {
            cells.emplace_back(tensor(r));
          } else {
            cells.emplace_back();
          }
        }
        auto& ptrs = pointersTo(cells);
        auto& room = optionals.emplace_back(n + 1);
        return EValue(&boxedOptionals.emplace_back(ptrs.data(), room.data(), int(n)));
      }
      default:
        die("unknown value tag");
    }
  }

  std::vector<EValue*>& pointersTo(std::vector<EValue>& cells) {
    auto& ptrs = pointers.emplace_back();
    for (auto& c : cells) ptrs.push_back(&c);
    if (ptrs.empty()) ptrs.push_back(nullptr);  // the list type wants a non-null array even when empty
    return ptrs;
  }

  void read(Reader& r) {
    uint32_t n = r.get<uint32_t>();
    values.reserve(n);
    for (uint32_t i = 0; i < n; i++) values.push_back(value(r));
  }
};

void write_tensor(Writer& w, const Tensor& t) {
  w.put<int8_t>(int8_t(t.scalar_type()));
  w.put<uint8_t>(uint8_t(t.dim()));
  for (auto s : t.sizes()) w.put<int64_t>(s);
  for (auto d : t.dim_order()) w.put<uint8_t>(d);
  size_t n = t.nbytes();
  if (n > 0 && t.const_data_ptr() == nullptr) n = 0;
  w.put<uint64_t>(n);
  w.raw(t.const_data_ptr(), n);
}

void write_value(Writer& w, const EValue& v) {
  w.put<uint8_t>(uint8_t(v.tag));
  switch (v.tag) {
    case Tag::None:
      break;
    case Tag::Tensor:
      write_tensor(w, v.toTensor());
      break;
    case Tag::String:
      w.str(std::string(v.toString()));
      break;
    case Tag::Double:
      w.put<double>(v.toDouble());
      break;
    case Tag::Int:
      w.put<int64_t>(v.toInt());
      break;
    case Tag::Bool:
      w.put<uint8_t>(v.toBool());
      break;
    case Tag::ListBool: {
      auto l = v.toBoolList();
      w.put<uint32_t>(l.size());
      for (bool x : l) w.put<uint8_t>(x);
      break;
    }
    case Tag::ListDouble: {
      auto l = v.toDoubleList();
      w.put<uint32_t>(l.size());
      for (double x : l) w.put<double>(x);
      break;
    }
    case Tag::ListInt: {
      auto l = v.toIntList();
      w.put<uint32_t>(l.size());
      for (int64_t x : l) w.put<int64_t>(x);
      break;
    }
    case Tag::ListTensor: {
      auto l = v.toTensorList();
      w.put<uint32_t>(l.size());
      for (const auto& t : l) write_tensor(w, t);
      break;
    }
    case Tag::ListOptionalTensor: {
      auto l = v.toListOptionalTensor();
      w.put<uint32_t>(l.size());
      for (const auto& t : l) {
        w.put<uint8_t>(t.has_value());
        if (t.has_value()) write_tensor(w, *t);
      }
      break;
    }
    default:
      die("a value of a kind the protocol does not carry");
  }
}

// What the stock Module allocates for one method: the arenas its meta asks for, zeroed, and two heap allocators.
struct LoadedMethod {
  std::vector<std::vector<uint8_t>> arenas;
  std::vector<etr::Span<uint8_t>> spans;
  std::unique_ptr<etr::HierarchicalAllocator> planned;
  ext::MallocMemoryAllocator methodAllocator, tempAllocator;
  std::unique_ptr<etr::MemoryManager> manager;
  std::vector<std::vector<uint8_t>> outputs;  // for outputs the program leaves to the caller
  std::optional<etr::Method> method;
};

class Session {
 public:
  Error load(const std::string& program, const std::string& data) {
    auto loader = ext::MmapDataLoader::from(program.c_str(), ext::MmapDataLoader::MlockConfig::NoMlock);
    if (!loader.ok()) return loader.error();
    loader_ = std::make_unique<ext::MmapDataLoader>(std::move(*loader));
    auto p = etr::Program::load(loader_.get(), etr::Program::Verification::InternalConsistency);
    if (!p.ok()) return p.error();
    program_ = std::make_unique<etr::Program>(std::move(*p));
    if (data.empty()) return Error::Ok;
    auto dl = ext::MmapDataLoader::from(data.c_str(), ext::MmapDataLoader::MlockConfig::NoMlock);
    if (!dl.ok()) return dl.error();
    dataLoader_ = std::make_unique<ext::MmapDataLoader>(std::move(*dl));
    auto map = ext::FlatTensorDataMap::load(dataLoader_.get());
    if (!map.ok()) return map.error();
    dataMap_ = std::make_unique<ext::FlatTensorDataMap>(std::move(*map));
    return Error::Ok;
  }

  Error describe(Writer& w) {
    if (!program_) return Error::InvalidState;
    size_t n = program_->num_methods();
    w.put<uint32_t>(n);
    for (size_t i = 0; i < n; i++) {
      auto name = program_->get_method_name(i);
      if (!name.ok()) return name.error();
      auto meta = program_->method_meta(*name);
      if (!meta.ok()) return meta.error();
      w.str(*name);
      w.put<uint32_t>(meta->num_inputs());
      for (size_t k = 0; k < meta->num_inputs(); k++) {
        if (Error e = describe(w, meta->input_tag(k), [&] { return meta->input_tensor_meta(k); }); e != Error::Ok) return e;
      }
      w.put<uint32_t>(meta->num_outputs());
      for (size_t k = 0; k < meta->num_outputs(); k++) {
        if (Error e = describe(w, meta->output_tag(k), [&] { return meta->output_tensor_meta(k); }); e != Error::Ok) return e;
      }
      w.put<uint32_t>(meta->num_memory_planned_buffers());
      for (size_t k = 0; k < meta->num_memory_planned_buffers(); k++) {
        auto size = meta->memory_planned_buffer_size(k);
        if (!size.ok()) return size.error();
        w.put<int64_t>(*size);
      }
      w.put<uint32_t>(meta->num_backends());
      for (size_t k = 0; k < meta->num_backends(); k++) {
        auto b = meta->get_backend_name(k);
        if (!b.ok()) return b.error();
        w.str(*b);
      }
      w.put<uint64_t>(meta->num_instructions());
    }
    return Error::Ok;
  }

  Error prepare(const std::string& name, LoadedMethod** out) {
    if (!program_) return Error::InvalidState;
    if (auto it = methods_.find(name); it != methods_.end()) {
      *out = it->second.get();
      return Error::Ok;
    }
    auto meta = program_->method_meta(name.c_str());
    if (!meta.ok()) return meta.error();
    auto m = std::make_unique<LoadedMethod>();
    for (size_t k = 0; k < meta->num_memory_planned_buffers(); k++) {
      auto size = meta->memory_planned_buffer_size(k);
      if (!size.ok()) return size.error();
      if (*size < 0 || *size > int64_t(1) << 40) return Error::MemoryAllocationFailed;
      m->arenas.emplace_back(size_t(*size), uint8_t(g_poison ? 0xA5 : 0));
      m->spans.emplace_back(m->arenas.back().data(), m->arenas.back().size());
    }
    m->planned = std::make_unique<etr::HierarchicalAllocator>(
        etr::Span<etr::Span<uint8_t>>(m->spans.data(), m->spans.size()));
    m->manager = std::make_unique<etr::MemoryManager>(&m->methodAllocator, m->planned.get(), &m->tempAllocator);
    auto loaded = program_->load_method(name.c_str(), m->manager.get(), nullptr, dataMap_.get());
    if (!loaded.ok()) return loaded.error();
    m->method.emplace(std::move(*loaded));
    for (size_t k = 0; k < meta->num_outputs(); k++) {
      auto tag = meta->output_tag(k);
      if (!tag.ok() || *tag != Tag::Tensor) continue;
      auto t = meta->output_tensor_meta(k);
      const EValue& v = m->method->get_output(k);
      if (!t.ok() || t->is_memory_planned() || !v.isTensor() || v.toTensor().const_data_ptr() != nullptr) continue;
      m->outputs.emplace_back(t->nbytes() + 64);
      if (Error e = m->method->set_output_data_ptr(m->outputs.back().data(), t->nbytes(), k); e != Error::Ok) return e;
    }
    *out = m.get();
    methods_[name] = std::move(m);
    return Error::Ok;
  }

  Error set(LoadedMethod& m, const Values& in) {
    if (in.values.size() != m.method->inputs_size()) {
      g_log += "the method takes " + std::to_string(m.method->inputs_size()) + " inputs, " +
               std::to_string(in.values.size()) + " given\n";
      return Error::InvalidArgument;
    }
    for (size_t i = 0; i < in.values.size(); i++) {
      if (Error e = m.method->set_input(in.values[i], i); e != Error::Ok) return e;
    }
    return Error::Ok;
  }

  void outputs(LoadedMethod& m, Writer& w) {
    w.put<uint32_t>(m.method->outputs_size());
    for (size_t i = 0; i < m.method->outputs_size(); i++) write_value(w, m.method->get_output(i));
  }

 private:
  template <typename F>
  Error describe(Writer& w, etr::Result<Tag> tag, F meta) {
    if (!tag.ok()) return tag.error();
    w.put<uint8_t>(uint8_t(*tag));
    if (*tag != Tag::Tensor) {
      w.str("");
      w.put<uint8_t>(0);
      return Error::Ok;
    }
    auto t = meta();
    if (!t.ok()) return t.error();
    w.str(std::string(t->name()));
    w.put<uint8_t>(1);
    w.put<int8_t>(int8_t(t->scalar_type()));
    w.put<uint8_t>(t->sizes().size());
    for (auto s : t->sizes()) w.put<int64_t>(s);
    for (auto d : t->dim_order()) w.put<uint8_t>(d);
    w.put<uint8_t>(t->is_memory_planned());
    return Error::Ok;
  }

  std::unique_ptr<ext::MmapDataLoader> loader_, dataLoader_;
  std::unique_ptr<etr::Program> program_;
  std::unique_ptr<ext::FlatTensorDataMap> dataMap_;
  std::map<std::string, std::unique_ptr<LoadedMethod>> methods_;
};

Error call_kernel(const std::string& name, Values& in) {
  std::vector<etr::TensorMeta> metas;
  for (const auto& v : in.values) {
    if (!v.isTensor()) continue;
    const Tensor& t = v.toTensor();
    metas.emplace_back(t.scalar_type(), etr::Span<executorch::aten::DimOrderType>(
                                            const_cast<uint8_t*>(t.dim_order().data()), t.dim_order().size()));
  }
  auto fn = etr::get_op_function_from_registry(name.c_str(), {metas.data(), metas.size()});
  if (!fn.ok()) return fn.error();
  ext::MallocMemoryAllocator temp;
  etr::KernelRuntimeContext context(nullptr, &temp);
  std::vector<EValue*> stack;
  for (auto& v : in.values) stack.push_back(&v);
  // Generated wrappers take the result once more after the arguments; the runtime's own scalar operators do not.
  bool scalar = false;
  for (const char* p : {"executorch_prim::", "aten::sym_", "aten::_local_scalar_dense"}) scalar |= name.rfind(p, 0) == 0;
  if (!scalar) stack.push_back(&in.values.back());
  (*fn)(context, {stack.data(), stack.size()});
  return context.failure_state();
}

bool read_all(int fd, void* p, size_t n) {
  auto* q = static_cast<uint8_t*>(p);
  while (n > 0) {
    ssize_t k = ::read(fd, q, n);
    if (k <= 0) return false;
    q += k;
    n -= size_t(k);
  }
  return true;
}

bool write_all(int fd, const void* p, size_t n) {
  auto* q = static_cast<const uint8_t*>(p);
  while (n > 0) {
    ssize_t k = ::write(fd, q, n);
    if (k <= 0) return false;
    q += k;
    n -= size_t(k);
  }
  return true;
}

int serve() {
  // Replies get their own descriptor, so that nothing a library prints can end up between two frames.
  int out = ::dup(1);
  ::dup2(2, 1);
  Session session;
  uint32_t hello[3] = {8, 0x5254454C, kProtocol};
  if (!write_all(out, hello, sizeof hello)) return 1;
  std::vector<uint8_t> frame;
  for (;;) {
    uint32_t n;
    if (!read_all(0, &n, sizeof n)) return 0;
    frame.resize(n);
    if (!read_all(0, frame.data(), n)) return 1;
    Reader r{frame.data(), frame.data() + n};
    Writer body;
    Error err = Error::Ok;
    const char* stage = "";
    g_log.clear();
    LoadedMethod* m = nullptr;
    Values in;
    switch (uint8_t cmd = r.get<uint8_t>(); cmd) {
      case 'L': {
        stage = "load program";
        std::string program = r.str(), data = r.str();
        err = session.load(program, data);
        break;
      }
      case 'M':
        stage = "describe methods";
        err = session.describe(body);
        break;
      case 'P':
        stage = "load method";
        err = session.prepare(r.str(), &m);
        break;
      case 'R':
      case 'B': {
        stage = "load method";
        err = session.prepare(r.str(), &m);
        if (err != Error::Ok) break;
        stage = "set inputs";
        in.read(r);
        err = session.set(*m, in);
        if (err != Error::Ok) break;
        stage = "execute";
        if (cmd == 'R') {
          err = m->method->execute();
          if (err == Error::Ok) session.outputs(*m, body);
          break;
        }
        uint32_t warmup = r.get<uint32_t>(), rounds = r.get<uint32_t>();
        body.put<uint32_t>(rounds);
        for (uint32_t i = 0; i < warmup + rounds && err == Error::Ok; i++) {
          // The memory of inputs may have been used for something else since.
          if (i > 0 && (err = session.set(*m, in)) != Error::Ok) break;
          auto t0 = std::chrono::steady_clock::now();
          err = m->method->execute();
          auto t1 = std::chrono::steady_clock::now();
          if (i >= warmup) {
            body.put<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t1 - t0).count());
          }
        }
        break;
      }
      case 'K': {
        stage = "call kernel";
        std::string name = r.str();
        in.read(r);
        if (in.values.empty()) die("a kernel call without arguments");
        err = call_kernel(name, in);
        if (err != Error::Ok) break;
        body.put<uint32_t>(in.values.size());
        for (const auto& v : in.values) write_value(body, v);
        break;
      }
      default:
        die("unknown command");
    }
    Writer head;
    head.put<uint32_t>(uint32_t(err));
    head.str(err == Error::Ok ? "" : etr::to_string(err));
    head.str(stage);
    head.str(g_log);
    size_t total = head.b.size() + (err == Error::Ok ? body.b.size() : 0);
    if (total > UINT32_MAX) die("outputs exceed 4 GB");
    uint32_t len = uint32_t(total);
    if (!write_all(out, &len, sizeof len) || !write_all(out, head.b.data(), head.b.size())) return 1;
    if (err == Error::Ok && !write_all(out, body.b.data(), body.b.size())) return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  etr::register_pal(etr::PalImpl::create(emit_log, __FILE__));
  etr::runtime_init();
  for (int i = 1; i < argc; i++) {
    std::string arg = argv[i];
    if (arg == "--kernels") {
      for (const auto& k : etr::get_registered_kernels()) {
        std::printf("%s\t%s\n", k.name_, k.kernel_key_.is_fallback() ? "" : k.kernel_key_.data());
      }
      return 0;
    }
    if (arg == "--backends") {
      for (size_t k = 0; k < etr::get_num_registered_backends(); k++) {
        auto name = etr::get_backend_name(k);
        if (name.ok()) std::printf("%s\n", *name);
      }
      return 0;
    }
    if (arg == "--poison") {
      g_poison = true;
    } else if (arg == "--threads" && i + 1 < argc) {
      int n = std::atoi(argv[++i]);
      auto* pool = ext::threadpool::get_threadpool();
      if (n < 1 || pool == nullptr || !pool->_unsafe_reset_threadpool(uint32_t(n))) die("cannot set the number of threads");
    } else {
      std::fprintf(stderr, "usage: runner --kernels | --backends | [--threads N] [--poison]\n");
      return 2;
    }
  }
  return serve();
}
