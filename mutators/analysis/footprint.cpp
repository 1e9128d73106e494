#include "mutators/analysis/footprint.hpp"

#include <algorithm>
#include <utility>

namespace evo {
namespace {

constexpr std::int32_t nobody = -1;
constexpr std::int32_t several = -2;
constexpr std::int64_t touch_limit = 100'000'000; // of elements by threads: a second or so

/// Who touched an element last: a thread in an epoch (the time between two barriers).
struct Stamp {
  std::int32_t epoch = -1;
  std::int32_t thread = nobody;
};

struct SharedElement {
  Stamp writer;
  Stamp reader;
  bool in_flight = false; // what was written has not arrived
};

struct GlobalElement {
  std::int32_t writer = nobody;
  std::int32_t reader = nobody;
  std::int32_t last_reader = nobody;
  std::int32_t reading_block = nobody;
};

/// What a segment reads in shared memory; nothing is kept where it does more than that.
struct SegmentUse {
  bool reads_only = true;
  std::map<int, std::vector<std::uint8_t>> read; // by array, per element
};

class FootprintObserver : public AccessObserver {
public:
  explicit FootprintObserver(const Evaluator& evaluator) : evaluator_(evaluator) {}

  void start_block(std::int32_t threads) {
    ++block_;
    first_thread_ += threads_;
    threads_ = threads;
    block_epoch_ = ++epoch_;
  }

  void access(const Access& access) override {
    const Array& array = evaluator_.arrays()[access.array];
    if (array.space == Array::Space::Local) {
      return;
    }
    touches_ += static_cast<std::int64_t>(access.active->count()) * access.width;
    const bool shared = array.space == Array::Space::Shared;
    if (segment_ != nullptr) {
      segment_->reads_only &= shared && !access.write;
    }
    if (shared) {
      auto& elements = shared_[access.array];
      elements.resize(array.elements);
      std::vector<std::uint8_t>* read = nullptr;
      if (segment_ != nullptr && segment_->reads_only) {
        read = &segment_->read[access.array];
        read->resize(elements.size());
      }
      for_each_element(access, [&](std::int64_t element, std::int32_t thread) {
        touch_shared(access.array, elements[element], access.write, thread);
        if (access.write) {
          begin_or_end_flight(access.array, elements[element], access.in_flight);
        }
        if (read != nullptr) {
          (*read)[element] = 1;
        }
      });
    } else {
      BufferState& buffer = buffers_[array.buffer];
      for_each_element(access, [&](std::int64_t element, std::int32_t thread) {
        const bool one = thread != several;
        touch_global(buffer, element, access.write, one ? thread + first_thread_ : several);
      });
    }
  }

  void barrier() override { ++epoch_; }

  void begin_segment(int id) override { segment_ = &segments_[id]; }
  void end_segment(int /*id*/) override { segment_ = nullptr; }
  bool repeat(int id) override {
    const SegmentUse& use = segments_.at(id);
    if (!use.reads_only) {
      return false;
    }
    for (const auto& [array, read] : use.read) {
      auto& elements = shared_[array];
      for (std::size_t element = 0; element < read.size(); ++element) {
        if (read[element]) {
          touch_shared(array, elements[element], false, several);
        }
      }
    }
    return true;
  }

  std::int64_t touches() const { return touches_; }

  /// By the last block.
  std::int64_t shared_elements_written() const {
    std::int64_t count = 0;
    for (const auto& [array, elements] : shared_) {
      count += std::ranges::count_if(elements, [&](const SharedElement& element) {
        return element.writer.epoch >= block_epoch_;
      });
    }
    return count;
  }

  std::map<int, BufferUse> uses() const {
    std::map<int, BufferUse> result;
    for (const auto& [buffer, state] : buffers_) {
      BufferUse& use = result[buffer];
      use.read_once_per_block = state.read_once_per_block;
      use.read_once_per_thread = state.read_once_per_thread;
      for (std::size_t i = 0; i < state.touched; ++i) {
        use.read.push_back(state.elements[i].reader != nobody);
        use.written.push_back(state.elements[i].writer != nobody);
      }
    }
    return result;
  }

private:
  struct BufferState {
    std::vector<GlobalElement> elements;
    std::size_t touched = 0; // elements up to the last one touched
    bool read_once_per_block = true;
    bool read_once_per_thread = true;
  };

  /// f(element, thread) in every active lane; threads that read one element count as `several`.
  template <class F> static void for_each_element(const Access& access, F f) {
    const auto touch = [&](std::int64_t first, std::int32_t thread) {
      for (std::int64_t element = first; element < first + access.width; ++element) {
        f(element, thread);
      }
    };
    if (!access.write && access.elements->uniform() && access.active->count() > 1) {
      touch((*access.elements)[0], several);
      return;
    }
    for (std::size_t lane = 0; lane < access.active->size(); ++lane) {
      if ((*access.active)[lane]) {
        touch((*access.elements)[lane], static_cast<std::int32_t>(lane));
      }
    }
  }

  void touch_shared(int array, SharedElement& element, bool write, std::int32_t thread) {
    if (!write && element.reader.epoch == epoch_ && element.reader.thread == several) {
      return; // seen before; a write since would have been reported
    }
    const auto conflicts = [&](const Stamp& other) {
      return other.epoch == epoch_ && other.thread != thread;
    };
    if (conflicts(element.writer) || (write && conflicts(element.reader))) {
      report("two threads touch one element of " + evaluator_.arrays()[array].name +
             " between two barriers");
    }
    if (write) {
      element.writer = {epoch_, thread};
      return;
    }
    if (element.in_flight) {
      report("an element of " + evaluator_.arrays()[array].name +
             " is read before its copy has arrived");
    }
    if (element.writer.epoch < block_epoch_) {
      report("an element of " + evaluator_.arrays()[array].name + " is read but never written");
    }
    element.reader = {epoch_, conflicts(element.reader) ? several : thread};
  }

  void begin_or_end_flight(int array, SharedElement& element, bool in_flight) {
    if (in_flight && element.in_flight) {
      report("two copies to one element of " + evaluator_.arrays()[array].name +
             " are on their way");
    }
    element.in_flight = in_flight;
  }

  void touch_global(BufferState& buffer, std::int64_t index, bool write, std::int32_t thread) {
    const auto needed = static_cast<std::size_t>(index) + 1;
    buffer.touched = std::max(buffer.touched, needed);
    if (needed > buffer.elements.size()) {
      buffer.elements.resize(2 * needed);
    }
    GlobalElement& element = buffer.elements[index];
    if (write) {
      if (element.writer != nobody && element.writer != thread) {
        report("two threads write one element of a buffer");
      }
      element.writer = thread;
    } else {
      buffer.read_once_per_block &= element.reading_block != block_ && thread != several;
      buffer.read_once_per_thread &=
          element.reading_block != block_ || element.last_reader != thread;
      element.reading_block = block_;
      element.last_reader = thread;
      element.reader = element.reader == nobody || element.reader == thread ? thread : several;
    }
    if (element.writer != nobody && element.reader != nobody && element.reader != element.writer) {
      report("one thread writes an element of a buffer that another reads");
    }
  }

  [[noreturn]] static void report(std::string reason) {
    throw Failure{Failure::Kind::Fault, std::move(reason)};
  }

  const Evaluator& evaluator_;
  std::map<int, std::vector<SharedElement>> shared_;
  std::map<int, BufferState> buffers_;
  std::map<int, SegmentUse> segments_;
  SegmentUse* segment_ = nullptr;
  std::int64_t touches_ = 0; // of elements by threads
  std::int32_t epoch_ = 0;
  std::int32_t block_epoch_ = 0;
  std::int32_t block_ = 0;
  std::int32_t first_thread_ = 0;
  std::int32_t threads_ = 0;
};

} // namespace

std::variant<Footprint, Failure> footprint(Evaluator& evaluator, const EvaluatedLaunch& launch,
                                           const std::vector<Extent3>& blocks) {
  FootprintObserver observer(evaluator);
  for (const Extent3& index : blocks) {
    observer.start_block(static_cast<std::int32_t>(launch.block.count()));
    if (const auto failure = evaluator.run(launch.block_at(index), observer)) {
      return *failure;
    }
    if (index == blocks.front() &&
        observer.touches() * static_cast<std::int64_t>(blocks.size()) > touch_limit) {
      return Failure{Failure::Kind::Unknown, "following all blocks would take long"};
    }
  }
  return Footprint{.buffers = observer.uses(),
                   .shared_elements_written = observer.shared_elements_written()};
}

bool has_races(const Kernel& kernel, const std::vector<std::int64_t>& dims) {
  const auto launches = evaluate_launches(kernel, dims);
  const auto* list = std::get_if<std::vector<EvaluatedLaunch>>(&launches);
  return list == nullptr || std::ranges::any_of(*list, [&](const EvaluatedLaunch& launch) {
           Evaluator evaluator(kernel);
           return std::holds_alternative<Failure>(footprint(evaluator, launch, {{0, 0, 0}}));
         });
}

bool same_use(const Footprint& before, const Footprint& after, const std::set<int>& free) {
  return std::ranges::equal(before.buffers, after.buffers, [&](const auto& old, const auto& now) {
    const BufferUse& a = old.second;
    const BufferUse& b = now.second;
    return old.first == now.first &&
           (free.contains(old.first) || (a.read == b.read && a.written == b.written)) &&
           (b.read_once_per_block || !a.read_once_per_block) &&
           (b.read_once_per_thread || !a.read_once_per_thread);
  });
}

} // namespace evo
