# SPDX-License-Identifier: Apache-2.0
"""Which JAX device an instance group of Triton means."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import jax

from tritonserver_jax.runtime.errors import Code, refuse


class Kind(enum.IntEnum):
    """Triton's instance group kinds (``TRITONSERVER_InstanceGroupKind``)."""

    AUTO = 0
    CPU = 1
    GPU = 2
    MODEL = 3


def _named(name: str, instance: str) -> jax.Device:
    """The device of a name such as ``cpu:1``."""
    platform, _, number = name.partition(":")
    try:
        found = [device for device in jax.devices(platform) if str(device.id) == number]
    except RuntimeError:
        found = []
    if not found:
        has = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        refuse(
            f"instance {instance}: the parameter 'devices' names {name}, which JAX does not have "
            f"(it has {has})",
            Code.UNAVAILABLE,
        )
    return found[0]


def device_for(
    kind: int, device_id: int, instance: str, chosen: Sequence[str] = (), turn: int = 0
) -> jax.Device:
    """The device, never another one in its place.

    Args:
        kind: of the instance group.
        device_id: of the device, within its kind.
        instance: its name, for messages.
        chosen: the model's own choice, for ``KIND_MODEL``.
        turn: which of them, counted over and over.

    Raises:
        BackendError: UNAVAILABLE where JAX has no such device, naming those it has.
    """
    if kind == Kind.MODEL and chosen:
        return _named(chosen[turn % len(chosen)], instance)
    if kind in (Kind.AUTO, Kind.MODEL):
        return jax.devices()[0]
    platform = "gpu" if kind == Kind.GPU else "cpu"
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        has = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        refuse(
            f"instance {instance} wants KIND_{platform.upper()}, but JAX has no {platform} device "
            f"(it has {has}): {error}",
            Code.UNAVAILABLE,
        )
    if not 0 <= device_id < len(devices):
        refuse(
            f"instance {instance} wants {platform} {device_id}, but JAX has {len(devices)} "
            f"{platform} device(s)",
            Code.UNAVAILABLE,
        )
    return devices[device_id]


def platform_of(device: jax.Device) -> str:
    """What ``jax.export`` calls the platform of a device: for a GPU, not JAX's own name."""
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"


def check_platform(platforms: Sequence[str], device: jax.Device, doing: str) -> None:
    """Check that an artifact was exported for the platform of a device.

    Raises:
        BackendError: UNSUPPORTED naming both platforms.
    """
    platform = platform_of(device)
    if platform not in platforms:
        refuse(
            f"{doing}: the model was exported for {', '.join(platforms)}, and the instance "
            f"is on {platform}; export it with platforms=[..., '{platform}'], or choose another "
            "kind in instance_group",
            Code.UNSUPPORTED,
        )
