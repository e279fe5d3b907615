// SPDX-License-Identifier: Apache-2.0
//! A processor for tests that look at nothing of it.

use bulkhead_arch_armv7m_core::Model;

/// Without lines, protection unit and floating point.
pub static MODEL: Model = Model {
    cpuid: 0,
    features: [0; 16],
    identification: [0; 12],
    lines: 0,
    priority_bits: 0xFF,
    systick_calibration: 0,
    systick_reference: 0,
    mpu_regions: 0,
    floating_point: false,
};
