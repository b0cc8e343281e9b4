"""IB-Forecast, in reading order: stage1_decompose, stage2_score, stage3_gate, stage4_readout, network, objective."""
