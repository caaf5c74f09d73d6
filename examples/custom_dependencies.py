"""Handlers that ask for interfaces; `server.bind` says what stands for them.

Serve it to a client that starts it:   python examples/custom_dependencies.py
"""

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from mcprelay import Schema, Server, resource, tool

UserId = Annotated[str, Schema("The ID of the user.", alias="userId")]


class Task(msgspec.Struct, rename="camel"):
    id: int
    user_id: str
    description: str
    completed: bool = False
    created_at: str = msgspec.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class Tasks(ABC):
    @abstractmethod
    def add(self, user_id: str, description: str) -> Task: ...

    @abstractmethod
    def all(self) -> list[Task]: ...


class Stats(ABC):
    @abstractmethod
    def overview(self) -> dict[str, int]: ...


class MemoryTasks(Tasks):
    def __init__(self):
        self.tasks: list[Task] = []
        for user, description in [("user1", "Buy groceries"), ("user1", "Write report"), ("user2", "Review a change")]:
            self.add(user, description)

    def add(self, user_id: str, description: str) -> Task:
        task = Task(len(self.tasks) + 1, user_id, description)
        self.tasks.append(task)
        return task

    def all(self) -> list[Task]:
        return self.tasks


class SystemStats(Stats):
    def __init__(self, tasks: Tasks):  # filled by what is bound, as below
        self.tasks = tasks
        self.started = time.monotonic()

    def overview(self) -> dict[str, int]:
        tasks = self.tasks.all()
        completed = sum(task.completed for task in tasks)
        return {
            "total_tasks": len(tasks),
            "completed_tasks": completed,
            "pending_tasks": len(tasks) - completed,
            "server_uptime_seconds": int(time.monotonic() - self.started),
        }


class Handlers:
    def __init__(self, tasks: Tasks, stats: Stats):
        self.tasks = tasks
        self.stats = stats

    @tool
    def add_task(self, user_id: UserId, description: str) -> Task:
        """Adds a new task for a given user."""
        return self.tasks.add(user_id, description)

    @tool
    def list_user_tasks(self, user_id: UserId) -> list[Task]:
        """Lists pending tasks for a specific user."""
        return [task for task in self.tasks.all() if task.user_id == user_id and not task.completed]

    @tool
    def complete_task(self, task_id: Annotated[int, Schema("The ID of the task.", alias="taskId")]) -> dict:
        """Marks a task as complete."""
        for task in self.tasks.all():
            if task.id == task_id:
                task.completed = True
                return {"success": True, "message": f"Task {task_id} completed."}
        return {"success": False, "message": f"Task {task_id} not found."}

    @resource("stats://system/overview", name="system_stats", mime_type="application/json")
    def system_stats(self) -> dict[str, int]:
        """Provides current system statistics."""
        return self.stats.overview()


server = Server("Task Manager Server", version="1.0.0")
server.bind(Tasks, MemoryTasks)
server.bind(Stats, SystemStats)
server.add(Handlers)

if __name__ == "__main__":
    server.run()
