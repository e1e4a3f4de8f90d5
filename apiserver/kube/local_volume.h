/* Volumes that sandbox-node makes: folders of its own on one machine. Who gives them to claims and who
 * mounts them agree here. */
#pragma once

/* Provisioner of StorageClasses and driver in spec.csi of PersistentVolumes. spec.csi.volumeHandle is
 * the folder's name: the uid of the claim that it was made for. */
#define LOCAL_VOLUME_DRIVER "node.agent-sandbox.dev"
