#pragma once

#include <atomic>

#include "python/native/session.h"

namespace candela::python {

class Requests;

/// One run that was asked for.
class Future {
public:
  Future(std::shared_ptr<Model> model, std::shared_ptr<Call> call);
  ~Future();
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;

  bool isDone() const;
  void cancel();
  /// Blocks until it is done and returns what Session::run would; seconds below 0: no limit. The
  /// same objects each time. Throws sdk::Error as it failed, or with CANDELA_TIMEOUT.
  py::object result(double seconds);

private:
  friend class Requests;
  /// The request alone, which results in memory of the library outlive.
  using Handle = std::shared_ptr<candela_request_t>;
  void wait(double seconds);
  py::object taken(Call& call) const;

  std::shared_ptr<Model> model_;
  std::shared_ptr<Call> call_; ///< until it is done
  std::shared_ptr<Requests> requests_;
  Handle handle_;
  py::object results_;
  uint32_t generation_;
};

struct SubmitOptions {
  double timeout = 0; ///< seconds; 0: no limit
  bool waits = true;  ///< for room
};

/// The requests on one model. Threads: any, with the interpreter's lock.
class Requests : public std::enable_shared_from_this<Requests> {
public:
  static std::shared_ptr<Requests> create(const std::shared_ptr<Model>& model,
                                          const sdk::Session::Options& options);
  ~Requests();

  std::shared_ptr<Future> submit(std::shared_ptr<Call> call, const SubmitOptions& options);
  std::string statsJson();
  /// Cancels what is not done and waits for it. Nothing can be submitted then.
  void close();
  /// Of every session of this process, before its interpreter ends.
  static void closeAll();

private:
  friend class Future;
  /// A call that uses the session: close() waits for it.
  class Use;
  Requests(const std::shared_ptr<Model>& model, const sdk::Session::Options& options);
  void keep(std::shared_ptr<Call> call, Future::Handle handle);
  void dropDone();

  /// What a Future left behind that was not done.
  struct Kept {
    std::shared_ptr<Call> call;
    Future::Handle handle;
  };
  std::shared_ptr<Model> model_;
  candela_session_t* session_ = nullptr;
  std::vector<Kept> kept_;
  std::atomic<uint32_t> uses_ = 0;
  std::atomic<bool> closes_ = false;
  std::atomic<bool> isClosed_ = false;
  uint32_t generation_;
};

/// A compiled model, as Python sees it.
class Session {
public:
  /// `keeps` is what the model has the address of.
  Session(sdk::Model&& model, const sdk::Session::Options& options, std::shared_ptr<void> keeps);

  const std::shared_ptr<Model>& model() const;
  py::object run(const py::object& inputs, const py::object& outputs);
  std::shared_ptr<Future> submit(const py::object& inputs, const py::object& outputs,
                                 const SubmitOptions& options);
  std::string statsJson();
  void close();
  bool isClosed() const { return !model_; }

private:
  std::shared_ptr<Requests> requests();

  std::shared_ptr<Model> model_;
  sdk::Session::Options options_;
  std::shared_ptr<Requests> requests_; ///< made by the first that is submitted
};

} // namespace candela::python
